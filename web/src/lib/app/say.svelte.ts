/** Messages to the user: toasts, and announcements to a screen reader. */
import { UNREACHABLE } from "$lib/rpc/error";

export interface Toast {
  id: number;
  kind: "info" | "success" | "error";
  text: string;
  /** What to do next. */
  hint: string | null;
  /** What the message is about. `resolve()` of it removes the message. */
  cause: string | null;
}

/** Milliseconds until a toast is removed. An error stays longer: it is longer, and nobody expects it. */
const STAYS = { info: 6_000, success: 6_000, error: 20_000 };
const MAX_TOASTS = 3;

class Voice {
  toasts = $state<Toast[]>([]);
  /** Read out by a screen reader when it changes. */
  announced = $state("");
  private last = 0;
  private timers = new Map<number, ReturnType<typeof setTimeout>>();

  /** Announce to screen readers what is visible anyway. */
  announce(text: string): void {
    // The same words twice in a row would not be read again.
    this.announced = this.announced === text ? `${text}\u00a0` : text;
  }

  tell(kind: Toast["kind"], text: string, hint?: string | null, cause: string | null = null): void {
    this.last += 1;
    const toast: Toast = { id: this.last, kind, text, hint: hint ?? null, cause };
    const others = this.toasts.filter((other) => other.text !== text);
    this.toasts = [...others.slice(1 - MAX_TOASTS), toast];
    this.resume(toast.id);
  }

  /** Keep a toast while the pointer or the focus is on it. */
  hold(id: number): void {
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
  }

  resume(id: number): void {
    const toast = this.toasts.find((other) => other.id === id);
    if (!toast) return;
    this.hold(id);
    this.timers.set(
      id,
      setTimeout(() => this.dismiss(id), STAYS[toast.kind]),
    );
  }

  dismiss(id: number): void {
    this.hold(id);
    this.toasts = this.toasts.filter((toast) => toast.id !== id);
  }

  /** Remove the messages about something that works again. */
  resolve(cause: string): void {
    for (const toast of this.toasts) if (toast.cause === cause) this.dismiss(toast.id);
  }

  /** For a `catch`: show what went wrong. A lost connection is its own cause, whatever was tried. */
  failed(thrown: unknown, cause: string | null = null): void {
    const error = thrown as { message?: string; hint?: string | null; code?: string };
    const about = error.code === UNREACHABLE ? UNREACHABLE : cause;
    this.tell("error", error.message ?? String(thrown), error.hint ?? null, about);
  }
}

export const say = new Voice();
