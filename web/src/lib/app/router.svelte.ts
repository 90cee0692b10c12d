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

  /** Where `route` is. */
  private address = location.hash;

  constructor() {
    addEventListener("hashchange", () => {
      const wanted = location.hash;
      if (unsaved.what === null) return this.arrive(wanted);
      // The browser is there already: back, until somebody has said whether to go.
      history.replaceState(null, "", this.address || "#/");
      unsaved.ask(() => this.go(wanted));
    });
  }

  go(address: string): void {
    location.hash = address;
  }

  /** The same place under another address: no new entry in the history. */
  replace(address: string): void {
    unsaved.ask(() => {
      history.replaceState(null, "", address);
      this.arrive(address);
    });
  }

  private arrive(address: string): void {
    this.address = address;
    this.route = parse(address);
  }
}

export const router = new Router();
