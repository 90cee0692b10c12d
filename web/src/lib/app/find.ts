/** What the palette finds beside commands: notes, files, symbols, conversations and rules. */
import { call } from "$lib/rpc";
import { href } from "./router.svelte";

export interface Place {
  id: string;
  title: string;
  /** What kind of thing it is. */
  group: string;
  /** Shown beside the title, and searched too. */
  about: string;
  href: string;
}

/** How many of each kind are shown. */
const MOST = 6;

/** Everything that is found by name, loaded when the palette opens. A view whose methods fail is left out. */
export async function places(): Promise<Place[]> {
  const lists = await Promise.allSettled([notes(), conversations(), rules()]);
  return lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []));
}

async function notes(): Promise<Place[]> {
  const { notes: list } = await call("vault.list", {});
  return list.map(({ title, path }) => ({
    id: `note-${path}`,
    title,
    group: "Note",
    about: path,
    href: href("notes", [path]),
  }));
}

async function conversations(): Promise<Place[]> {
  const { contexts } = await call("agent.contexts", { limit: 200 });
  return contexts.flatMap(({ id, name, first_question: question, is_default }) => {
    const title = (is_default ? question : (name ?? question)) ?? null;
    return title === null
      ? []
      : [{ id: `conversation-${id}`, title, group: "Conversation", about: question ?? "", href: href("ask", [id]) }];
  });
}

async function rules(): Promise<Place[]> {
  const { rules: list } = await call("rules.list", {});
  return list.map(({ rule, name, description }) => ({
    id: `rule-${rule}`,
    title: name,
    group: "Rule",
    about: description,
    href: href("rules", [rule]),
  }));
}

/** Symbols by their exact name, then passages of code and their files. */
export async function inCode(words: string): Promise<Place[]> {
  const isName = /^[\w.:]+$/.test(words);
  const [defined, found] = await Promise.allSettled([
    isName ? call("code.find_definition", { symbol: words }) : Promise.reject(new Error("not a name")),
    call("code.search", { query: words, limit: MOST }),
  ]);
  const places: Place[] = [];
  const add = (place: Place) => places.some((one) => one.id === place.id) || places.push(place);
  if (defined.status === "fulfilled")
    for (const { name, path, line_start } of defined.value.definitions.slice(0, MOST))
      add(symbol(name, path, line_start));
  if (found.status === "fulfilled") {
    for (const { source, heading } of found.value.passages) {
      const file = source.path.split("/").at(-1) ?? source.path;
      if (file.toLowerCase().includes(words.toLowerCase()))
        add({
          id: `file-${source.path}`,
          title: file,
          group: "File",
          about: source.path,
          href: href("code", [source.path]),
        });
      const name = source.title || heading;
      if (name) add(symbol(name, source.path, source.line_start));
    }
  }
  return places.slice(0, MOST * 2);
}

const symbol = (name: string, path: string, line: number): Place => ({
  id: `symbol-${path}-${line}`,
  title: name,
  group: "Code",
  about: `${path}:${line}`,
  href: href("code", [path], { line: String(line) }),
});

/** Those that have all words; a title that starts with them first, at most some of each kind. */
export function matching(all: Place[], words: string[]): Place[] {
  if (words.length === 0) return [];
  const fits = (place: Place) => {
    const text = `${place.title} ${place.about}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const rank = ({ title }: Place) => {
    const lower = title.toLowerCase();
    if (lower.startsWith(words[0] ?? "")) return 0;
    return words.every((word) => lower.includes(word)) ? 1 : 2;
  };
  const counts = new Map<string, number>();
  return all
    .filter(fits)
    .sort((a, b) => rank(a) - rank(b))
    .filter(({ group }) => {
      const count = counts.get(group) ?? 0;
      counts.set(group, count + 1);
      return count < MOST;
    });
}
