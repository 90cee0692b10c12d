/** Everything that can be done from the keyboard: the palette and the overview on `?` list this and nothing else. */
import { untrack } from "svelte";

export interface Command {
  id: string;
  title: string;
  /** The heading it stands under. */
  group: string;
  /** `mod+k`, `?`, or keys pressed one after the other: `g a`. */
  keys?: string;
  /** Further words it is found by. */
  words?: string;
  /** Whether the keys work while a text is edited. Those with `mod` always do. */
  whileTyping?: boolean;
  run: () => void;
}

class Commands {
  private sets = $state.raw<Command[][]>([]);

  get all(): Command[] {
    return this.sets.flat();
  }

  /** Adds commands until the answer is called: `$effect(() => commands.add([…]))`. */
  add(set: Command[]): () => void {
    // Whoever adds in an effect does not want to add again when somebody else does.
    this.sets = [...untrack(() => this.sets), set];
    return () => {
      this.sets = this.sets.filter((other) => other !== set);
    };
  }
}

export const commands = new Commands();

/** How long the second key of a sequence may take. */
const SEQUENCE = 1_000;

let pending = "";
let pressedAt = 0;

/** Runs the command whose keys were pressed. */
export function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const pressed = nameOf(event);
  if (pressed === null) return;
  const typing = isTyping(event.target);
  const modal = document.querySelector("dialog[open]") !== null;
  const sequence = event.timeStamp - pressedAt < SEQUENCE && pending ? `${pending} ${pressed}` : pressed;
  const usable = commands.all.filter((command) => {
    if (command.keys === undefined) return false;
    const always = command.keys.startsWith("mod+");
    return always || (!modal && (!typing || command.whileTyping === true));
  });
  // The latest comes first: a view may take over what the page does by itself.
  const found =
    usable.findLast((command) => command.keys === sequence) ?? usable.findLast((command) => command.keys === pressed);
  pending = found || typing ? "" : pressed;
  pressedAt = event.timeStamp;
  if (!found) return;
  event.preventDefault();
  found.run();
}

function nameOf(event: KeyboardEvent): string | null {
  if (["Shift", "Control", "Meta", "Alt"].includes(event.key)) return null;
  const mod = event.metaKey || event.ctrlKey;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (mod) return event.shiftKey ? `mod+shift+${key}` : `mod+${key}`;
  return key;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

const mac = /mac|iphone|ipad/i.test(navigator.userAgent);

/** The keys as they are written on them. */
export function shown(keys: string): string[] {
  return keys.split(" ").map((key) =>
    key
      .replace("mod+", mac ? "⌘" : "Ctrl ")
      .replace("shift+", mac ? "⇧" : "Shift ")
      .replace("Escape", "Esc")
      .replace("Enter", "↵")
      .replace(/(^|[ ⌘⇧])([a-z])$/, (_, before: string, letter: string) => before + letter.toUpperCase()),
  );
}
