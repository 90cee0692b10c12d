/** Which lines were taken away and which were added. */

export interface DiffLine {
  /** `place` stands for lines that are left out. */
  kind: "same" | "removed" | "added" | "place";
  text: string;
  /** Its number before the change, and after it. */
  old: number | null;
  now: number | null;
}

/** Longer texts than this are not compared line by line. */
const MOST = 2_000;

/** The lines of a unified diff. What stands above the first place names the two versions, and is left out. */
export function unified(diff: string): DiffLine[] {
  const found: DiffLine[] = [];
  let [old, now] = [0, 0];
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    const place = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
    const text = line.slice(1);
    if (place) {
      [old, now] = [Number(place[1]), Number(place[2])];
      found.push({ kind: "place", text: line, old: null, now: null });
    } else if (old === 0 && now === 0) {
    } else if (line.startsWith("+")) found.push({ kind: "added", text, old: null, now: now++ });
    else if (line.startsWith("-")) found.push({ kind: "removed", text, old: old++, now: null });
    else if (!line.startsWith("\\")) found.push({ kind: "same", text, old: old++, now: now++ });
  }
  return found;
}

/** What differs between two texts, with a few lines around each change. */
export function compared(before: string, after: string): DiffLine[] {
  return nearChanges(lineDiff(before.split("\n"), after.split("\n")));
}

function lineDiff(a: string[], b: string[]): DiffLine[] {
  const removed = (i: number): DiffLine => ({ kind: "removed", text: a[i] ?? "", old: i + 1, now: null });
  const added = (j: number): DiffLine => ({ kind: "added", text: b[j] ?? "", old: null, now: j + 1 });
  if (a.length > MOST || b.length > MOST) return [...a.map((_, i) => removed(i)), ...b.map((_, j) => added(j))];
  const common = commonParts(a, b);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i] ?? "", old: i + 1, now: j + 1 });
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && (common[i + 1]?.[j] ?? 0) >= (common[i]?.[j + 1] ?? 0))) {
      lines.push(removed(i++));
    } else lines.push(added(j++));
  }
  return lines;
}

/** The length of the longest common part of what follows each pair of lines. */
function commonParts(a: string[], b: string[]): Uint16Array[] {
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const [here, down] = [common[i] as Uint16Array, common[i + 1] as Uint16Array];
    for (let j = b.length - 1; j >= 0; j -= 1) {
      here[j] = a[i] === b[j] ? (down[j + 1] ?? 0) + 1 : Math.max(down[j] ?? 0, here[j + 1] ?? 0);
    }
  }
  return common;
}

/** The lines that changed, with a few around each. */
function nearChanges(lines: DiffLine[], around = 3): DiffLine[] {
  const isNear = (i: number) =>
    lines.slice(Math.max(0, i - around), i + around + 1).some((line) => line.kind !== "same");
  const found: DiffLine[] = [];
  lines.forEach((line, i) => {
    if (isNear(i)) found.push(line);
    else if (found.at(-1)?.kind !== "place") found.push({ kind: "place", text: "⋯", old: null, now: null });
  });
  return found.some((line) => line.kind !== "place") ? found : [];
}
