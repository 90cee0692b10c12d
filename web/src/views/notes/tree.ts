/** Notes as a tree of folders, and the lines of it that are open. */
import type { NoteRef } from "$lib/rpc/types";

export interface Line {
  kind: "folder" | "note";
  path: string;
  name: string;
  depth: number;
  /** Its place among its siblings, from 1, and how many there are. */
  place: number;
  of: number;
  /** How many notes are in a folder. */
  count: number;
}

interface Folder {
  folders: Map<string, Folder>;
  notes: NoteRef[];
  count: number;
}

const empty = (): Folder => ({ folders: new Map(), notes: [], count: 0 });

export function folders(notes: NoteRef[]): Folder {
  const root = empty();
  for (const note of notes) {
    let folder = root;
    folder.count += 1;
    for (const part of note.path.split("/").slice(0, -1)) {
      let next = folder.folders.get(part);
      if (!next) {
        next = empty();
        folder.folders.set(part, next);
      }
      next.count += 1;
      folder = next;
    }
    folder.notes.push(note);
  }
  return root;
}

const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** What is seen, from top to bottom. */
export function lines(root: Folder, isOpen: (folder: string) => boolean): Line[] {
  const found: Line[] = [];
  const walk = (folder: Folder, above: string, depth: number) => {
    const inner = [...folder.folders].sort(([a], [b]) => order.compare(a, b));
    const notes = [...folder.notes].sort((a, b) => order.compare(a.title, b.title));
    const of = inner.length + notes.length;
    inner.forEach(([first, child], i) => {
      // A folder with nothing but one folder in it shares its line with that.
      let [name, next] = [first, child];
      while (next.notes.length === 0 && next.folders.size === 1) {
        const [[only, below]] = [...next.folders] as [[string, Folder]];
        [name, next] = [`${name}/${only}`, below];
      }
      const path = above ? `${above}/${name}` : name;
      found.push({ kind: "folder", path, name, depth, place: i + 1, of, count: next.count });
      if (isOpen(path)) walk(next, path, depth + 1);
    });
    notes.forEach((note, i) => {
      found.push({ kind: "note", path: note.path, name: note.title, depth, place: inner.length + i + 1, of, count: 0 });
    });
  };
  walk(root, "", 0);
  return found;
}
