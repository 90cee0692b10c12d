/** The notes and their links, by numbers. */
import type { Graph, NoteRef } from "$lib/rpc/types";

export class Net {
  readonly notes: NoteRef[];
  /** Pairs of notes, one after the other. */
  readonly edges: Int32Array;
  readonly degree: Uint32Array;
  /** Those with the most links first. */
  readonly byDegree: number[];
  private readonly linked = new Map<number, number[]>();
  private readonly numbers = new Map<string, number>();

  constructor(graph: Graph) {
    this.notes = graph.notes;
    graph.notes.forEach((note, i) => {
      this.numbers.set(note.path, i);
    });
    const pairs: number[] = [];
    for (const edge of graph.edges) {
      const from = this.numbers.get(edge.from);
      const to = this.numbers.get(edge.to);
      if (from === undefined || to === undefined || from === to) continue;
      pairs.push(from, to);
      this.link(from, to);
      this.link(to, from);
    }
    this.edges = Int32Array.from(pairs);
    this.degree = Uint32Array.from(graph.notes, (_, i) => this.linked.get(i)?.length ?? 0);
    this.byDegree = graph.notes
      .map((_, i) => i)
      .sort((a, b) => (this.degree[b] as number) - (this.degree[a] as number));
  }

  private link(from: number, to: number): void {
    const known = this.linked.get(from);
    if (!known) this.linked.set(from, [to]);
    else if (!known.includes(to)) known.push(to);
  }

  neighbours(note: number): number[] {
    return this.linked.get(note) ?? [];
  }

  numberOf(path: string): number | null {
    return this.numbers.get(path) ?? null;
  }
}

/** The note at a place, if one is near enough. */
export function nearest(places: Float32Array, x: number, y: number, within: number): number | null {
  let found: number | null = null;
  let best = within * within;
  for (let i = 0; i < places.length; i += 2) {
    const dx = (places[i] as number) - x;
    const dy = (places[i + 1] as number) - y;
    const distance = dx * dx + dy * dy;
    if (distance < best) [best, found] = [distance, i / 2];
  }
  return found;
}

/** The next note in a direction: near, and not too far to the side. */
export function towards(places: Float32Array, from: number, dx: number, dy: number): number | null {
  const x = places[2 * from] as number;
  const y = places[2 * from + 1] as number;
  let found: number | null = null;
  let best = Infinity;
  for (let i = 0; i < places.length / 2; i++) {
    const ox = (places[2 * i] as number) - x;
    const oy = (places[2 * i + 1] as number) - y;
    const ahead = ox * dx + oy * dy;
    const aside = Math.abs(ox * dy - oy * dx);
    if (i === from || ahead <= 0 || aside > ahead) continue;
    const distance = ahead + 2 * aside;
    if (distance < best) [best, found] = [distance, i];
  }
  return found;
}
