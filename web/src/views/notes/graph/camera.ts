/** Which part of the graph is seen, and how large. */

export interface Camera {
  x: number;
  y: number;
  zoom: number;
}

const NEAREST = 6;
const FARTHEST = 0.02;

export const clamped = (zoom: number): number => Math.min(NEAREST, Math.max(FARTHEST, zoom));

/** From a place in the graph to one on the screen. */
export function onScreen(camera: Camera, width: number, height: number, x: number, y: number): [number, number] {
  return [(x - camera.x) * camera.zoom + width / 2, (y - camera.y) * camera.zoom + height / 2];
}

export function inGraph(camera: Camera, width: number, height: number, x: number, y: number): [number, number] {
  return [(x - width / 2) / camera.zoom + camera.x, (y - height / 2) / camera.zoom + camera.y];
}

/** Nearer or farther, with what is under the pointer staying there. */
export function zoomed(
  camera: Camera,
  width: number,
  height: number,
  by: number,
  x = width / 2,
  y = height / 2,
): Camera {
  const [px, py] = inGraph(camera, width, height, x, y);
  const zoom = clamped(camera.zoom * by);
  return { zoom, x: px - (x - width / 2) / zoom, y: py - (y - height / 2) / zoom };
}

/** So that all of it is seen. */
export function fitting(places: Float32Array, width: number, height: number): Camera {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < places.length; i += 2) {
    left = Math.min(left, places[i] as number);
    right = Math.max(right, places[i] as number);
    top = Math.min(top, places[i + 1] as number);
    bottom = Math.max(bottom, places[i + 1] as number);
  }
  if (left > right) return { x: 0, y: 0, zoom: 1 };
  const zoom = Math.min(2, clamped(0.92 * Math.min(width / (right - left + 40), height / (bottom - top + 40))));
  return { x: (left + right) / 2, y: (top + bottom) / 2, zoom };
}
