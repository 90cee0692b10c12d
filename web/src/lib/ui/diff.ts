/** Which lines were taken away and which were added. */

export interface DiffLine {
  kind: "same" | "gone" | "new";
  text: string;
}

/** Longer texts than this are not compared line by line. */
const MOST = 2_000;

export function lineDiff(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  if (a.length > MOST || b.length > MOST) {
    return [
      ...a.map((text) => ({ kind: "gone" as const, text })),
      ...b.map((text) => ({ kind: "new" as const, text })),
    ];
  }
  // The length of the longest common part of what follows each pair of lines.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const [here, down, right] = [
        common[i] as Uint16Array,
        common[i + 1] as Uint16Array,
        (common[i] as Uint16Array)[j + 1] ?? 0,
      ];
      here[j] = a[i] === b[j] ? (down[j + 1] ?? 0) + 1 : Math.max(down[j] ?? 0, right);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const take = (kind: DiffLine["kind"], text: string | undefined) => lines.push({ kind, text: text ?? "" });
    if (i < a.length && j < b.length && a[i] === b[j]) {
      take("same", a[i]);
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && (common[i + 1]?.[j] ?? 0) >= (common[i]?.[j + 1] ?? 0))) {
      take("gone", a[i]);
      i += 1;
    } else {
      take("new", b[j]);
      j += 1;
    }
  }
  return lines;
}

/** The lines that changed, with a few around each; `null` stands for what is left out. */
export function nearChanges(lines: DiffLine[], around = 3): (DiffLine | null)[] {
  const near = lines.map((_, i) =>
    lines.slice(Math.max(0, i - around), i + around + 1).some((line) => line.kind !== "same"),
  );
  const found: (DiffLine | null)[] = [];
  lines.forEach((line, i) => {
    if (near[i]) found.push(line);
    else if (found.length === 0 || found.at(-1) !== null) found.push(null);
  });
  return found;
}
