/** `j` and `k` in lists: the next and the previous item takes the focus. */
import { commands } from "./commands.svelte";

/** Adds the keys until the result is called: `$effect(() => listKeys(() => [...rows]))`. */
export function listKeys(items: () => HTMLElement[]): () => void {
  const move = (by: number) => {
    const all = items();
    const at = all.findIndex((item) => item.contains(document.activeElement));
    const next = at < 0 ? all[by > 0 ? 0 : all.length - 1] : all[at + by];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  return commands.add([
    { id: "list-next", title: "Next in the list", group: "List", keys: "j", run: () => move(1) },
    { id: "list-previous", title: "Previous in the list", group: "List", keys: "k", run: () => move(-1) },
  ]);
}
