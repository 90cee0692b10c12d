/** What the page and the thread of the layout say to each other. */

export type ToLayout = { kind: "begin"; count: number; edges: Int32Array } | { kind: "more" };

export interface FromLayout {
  /** x and y of each note. */
  places: Float32Array;
  steps: number;
  done: boolean;
}
