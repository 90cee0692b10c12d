/** What somebody wrote and has not saved: nobody moves on without being asked. */
import { untrack } from "svelte";

interface Held {
  /** What would be lost: "The rule". */
  what: string;
  /** Forgets it for good. */
  drop: () => void;
}

class Unsaved {
  private held = $state.raw<Held[]>([]);
  private next = $state.raw<(() => void) | null>(null);

  /** What would be lost now, if anything. */
  get what(): string | null {
    return this.held.at(-1)?.what ?? null;
  }

  /** Whether somebody is being asked. */
  get asking(): boolean {
    return this.next !== null;
  }

  /** Holds on to it until the answer is called: `$effect(() => (changed ? unsaved.hold("The rule") : undefined))`. */
  hold(what: string, drop: () => void = () => {}): () => void {
    const held = { what, drop };
    this.held = [...untrack(() => this.held), held];
    return () => {
      this.held = untrack(() => this.held).filter((other) => other !== held);
    };
  }

  /** Does it at once where nothing would be lost; otherwise once somebody has said that it may. */
  ask(go: () => void): void {
    if (this.what === null) go();
    else this.next = go;
  }

  stay(): void {
    this.next = null;
  }

  leave(): void {
    const go = this.next;
    this.next = null;
    this.forget();
    go?.();
  }

  /** Lets go of everything that is held. */
  forget(): void {
    const { held } = this;
    this.held = [];
    for (const one of held) one.drop();
  }
}

export const unsaved = new Unsaved();
