/**
 * The address is `#/view/part/part?name=value`: everything after `#` stays in the browser, so the
 * server has one page and no list of views.
 */
import { unsaved } from "./unsaved.svelte";

export interface Route {
  view: string;
  /** The parts after the view, decoded. */
  parts: string[];
  query: URLSearchParams;
}

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", ...parts] = path.split("/").filter(Boolean).map(decoded);
  return { view, parts, query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a view: `href("notes", ["a/b.md"], { line: "4" })`. */
export function href(view: string, parts: string[] = [], query: Record<string, string | undefined> = {}): string {
  const path = [view, ...parts].map(encodeURIComponent).join("/");
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined);
  const search = new URLSearchParams(given).toString();
  return `#/${path}${search ? `?${search}` : ""}`;
}

class Router {
  route = $state.raw<Route>(parse(location.hash));
  /** How many places of this page come before this one in the browser's history. */
  private place = 0;
  /** Whether the browser is on its way back to where it was. */
  private returning = false;

  constructor() {
    history.replaceState({ place: 0 }, "");
    addEventListener("hashchange", () => this.changed());
  }

  go(address: string): void {
    location.hash = address;
  }

  /** The same place under another address: no new entry in the history. */
  replace(address: string): void {
    unsaved.ask(() => {
      history.replaceState({ place: this.place }, "", address);
      this.route = parse(address);
    });
  }

  /** The browser is somewhere else: by a link, which makes a new place, or by its own buttons. */
  private changed(): void {
    const known = (history.state as { place: number } | null)?.place;
    if (this.returning) this.returning = false;
    else if (unsaved.what === null) this.arrive(known ?? this.place + 1);
    else this.hesitate(known);
  }

  /** Back, until somebody has said whether to go. */
  private hesitate(known: number | undefined): void {
    const wanted = location.hash;
    const steps = known === undefined ? 1 : known - this.place;
    this.returning = true;
    history.go(-steps);
    unsaved.ask(() => (known === undefined ? this.go(wanted) : history.go(steps)));
  }

  private arrive(place: number): void {
    this.place = place;
    history.replaceState({ place }, "");
    this.route = parse(location.hash);
  }
}

export const router = new Router();
