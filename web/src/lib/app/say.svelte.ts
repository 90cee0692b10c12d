/** What the page tells somebody by itself: in a corner, and to a screen reader. */

export interface Told {
  id: number;
  kind: "info" | "success" | "error";
  text: string;
  /** What to do next. */
  hint?: string | null;
}

const STAYS = 6_000;

class Voice {
  toasts = $state<Told[]>([]);
  /** Read out by a screen reader when it changes. */
  announced = $state("");
  private last = 0;

  /** Only for ears: what eyes see anyway. */
  announce(text: string): void {
    // The same words twice in a row would not be read again.
    this.announced = this.announced === text ? `${text}\u00a0` : text;
  }

  tell(kind: Told["kind"], text: string, hint?: string | null): void {
    this.last += 1;
    const told: Told = { id: this.last, kind, text, hint: hint ?? null };
    this.toasts = [...this.toasts.slice(-3), told];
    if (kind !== "error") setTimeout(() => this.dismiss(told.id), STAYS);
  }

  dismiss(id: number): void {
    this.toasts = this.toasts.filter((told) => told.id !== id);
  }

  /** For a `catch`: shows what went wrong. */
  failed(thrown: unknown): void {
    const error = thrown as { message?: string; hint?: string | null };
    this.tell("error", error.message ?? String(thrown), error.hint ?? null);
  }
}

export const say = new Voice();
