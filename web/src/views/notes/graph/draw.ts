/** Draws the graph. Links are one path and notes of a size another, so that thousands take milliseconds. */
import { type Camera, onScreen } from "./camera";
import type { Net } from "./net";

export interface Colours {
  line: string;
  note: string;
  strong: string;
  text: string;
  halo: string;
  font: string;
}

export function colours(element: Element): Colours {
  const style = getComputedStyle(element);
  return {
    line: style.getPropertyValue("--graph-line"),
    note: style.getPropertyValue("--graph-note"),
    strong: style.getPropertyValue("--graph-strong"),
    text: style.color,
    halo: style.backgroundColor,
    font: style.fontFamily,
  };
}

export interface Scene {
  net: Net;
  places: Float32Array;
  camera: Camera;
  width: number;
  height: number;
  /** The note that the pointer or the keyboard is at. */
  at: number | null;
  colours: Colours;
}

export const radiusOf = (degree: number): number => 2.5 + Math.min(9, Math.sqrt(degree) * 1.1);

/** Titles are drawn for at most so many notes. */
const LABELS = 40;

export function draw(to: CanvasRenderingContext2D, scene: Scene, ratio: number): void {
  to.setTransform(ratio, 0, 0, ratio, 0, 0);
  // Drawn too: what is behind a canvas is not always repainted when light turns to dark.
  to.fillStyle = scene.colours.halo;
  to.fillRect(0, 0, scene.width, scene.height);
  const near = scene.at === null ? null : new Set([scene.at, ...scene.net.neighbours(scene.at)]);
  links(to, scene, null);
  if (near) links(to, scene, scene.at);
  notes(to, scene, near);
  titles(to, scene, near);
}

function links(to: CanvasRenderingContext2D, scene: Scene, only: number | null): void {
  const { net, places, camera, width, height } = scene;
  to.beginPath();
  for (let e = 0; e < net.edges.length; e += 2) {
    const a = net.edges[e] as number;
    const b = net.edges[e + 1] as number;
    if (only !== null && a !== only && b !== only) continue;
    const [ax, ay] = onScreen(camera, width, height, places[2 * a] as number, places[2 * a + 1] as number);
    const [bx, by] = onScreen(camera, width, height, places[2 * b] as number, places[2 * b + 1] as number);
    if (Math.max(ax, bx) < 0 || Math.max(ay, by) < 0 || Math.min(ax, bx) > width || Math.min(ay, by) > height) continue;
    to.moveTo(ax, ay);
    to.lineTo(bx, by);
  }
  to.lineWidth = only === null ? Math.min(1, 0.35 + camera.zoom * 0.4) : 1.5;
  to.strokeStyle = only === null ? scene.colours.line : scene.colours.strong;
  to.stroke();
}

function notes(to: CanvasRenderingContext2D, scene: Scene, near: Set<number> | null): void {
  const { net, places, camera, width, height } = scene;
  const scale = Math.min(1.6, Math.max(0.45, Math.sqrt(camera.zoom)));
  for (const strong of [false, true]) {
    to.beginPath();
    for (let i = 0; i < net.notes.length; i++) {
      if ((near?.has(i) ?? false) !== strong) continue;
      const [x, y] = onScreen(camera, width, height, places[2 * i] as number, places[2 * i + 1] as number);
      if (x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
      const radius = radiusOf(net.degree[i] as number) * scale;
      to.moveTo(x + radius, y);
      to.arc(x, y, radius, 0, 2 * Math.PI);
    }
    to.fillStyle = strong ? scene.colours.strong : scene.colours.note;
    to.globalAlpha = near && !strong ? 0.45 : 1;
    to.fill();
  }
  to.globalAlpha = 1;
}

function titles(to: CanvasRenderingContext2D, scene: Scene, near: Set<number> | null): void {
  const { net, places, camera, width, height, colours } = scene;
  to.font = `12px ${colours.font}`;
  to.textAlign = "center";
  to.textBaseline = "top";
  to.lineJoin = "round";
  to.lineWidth = 3;
  to.strokeStyle = colours.halo;
  to.fillStyle = colours.text;
  const taken: [number, number, number][] = [];
  const wanted = near ? [scene.at as number, ...near] : net.byDegree;
  let drawn = 0;
  for (const i of wanted) {
    if (drawn >= LABELS) return;
    const [x, y] = onScreen(camera, width, height, places[2 * i] as number, places[2 * i + 1] as number);
    if (x < 0 || y < 0 || x > width || y > height) continue;
    const text = net.notes[i]?.title ?? "";
    const half = Math.min(150, text.length * 6.2) / 2;
    const top = y + radiusOf(net.degree[i] as number) + 3;
    // A title over another helps nobody.
    if (i !== scene.at && taken.some(([tx, ty, th]) => Math.abs(tx - x) < th + half + 4 && Math.abs(ty - top) < 15))
      continue;
    taken.push([x, top, half]);
    to.strokeText(text, x, top, 260);
    to.fillText(text, x, top, 260);
    drawn += 1;
  }
}
