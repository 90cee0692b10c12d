/** Methods by the type of what they emit: an item tells its plugin and its type, and not its method. */
import { call } from "$lib/rpc";
import type { MethodOf } from "./spans";

/** Looks the methods of plugins up as those come to be known. */
export function methodsOf(plugins: () => string[]): { readonly of: MethodOf } {
  /** By plugin and type; `null` where several methods emit the type. */
  let known = $state.raw(new Map<string, string | null>());
  const asked = new Set<string>();
  $effect(() => {
    for (const plugin of plugins()) {
      if (asked.has(plugin)) continue;
      asked.add(plugin);
      // Without an answer a call is called after its plugin.
      void call("hub.methods", { plugin }).then(add, () => asked.delete(plugin));
    }
  });

  function add({ methods }: { methods: { name: string; result: unknown }[] }): void {
    const found = new Map(known);
    for (const { name, result } of methods) {
      const key = `${name.split(".")[0]} ${(result as { title?: string }).title}`;
      found.set(key, found.has(key) ? null : name);
    }
    known = found;
  }

  return {
    get of(): MethodOf {
      const now = known;
      return (plugin, type) => now.get(`${plugin} ${type}`) ?? undefined;
    },
  };
}
