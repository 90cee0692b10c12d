/** What somebody types, once they pause: `const wanted = settled(() => query)`. */
const PAUSE = 150;

export function settled<T>(source: () => T, pause = PAUSE): { readonly value: T } {
  let value = $state.raw<T>(source());
  $effect(() => {
    const next = source();
    const timer = setTimeout(() => {
      value = next;
    }, pause);
    return () => clearTimeout(timer);
  });
  return {
    get value() {
      return value;
    },
  };
}
