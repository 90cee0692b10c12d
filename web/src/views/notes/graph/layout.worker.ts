/**
 * The layout, on a thread of its own: the page answers while it runs. Places are sent when the page
 * has drawn the last ones and asks for more, so that none pile up.
 */
import { Layout } from "./layout";
import type { FromLayout, ToLayout } from "./messages";

/** How long it works before it looks for messages. */
const SLICE = 24;

let layout: Layout | null = null;
let wanted = false;
let steps = 0;

addEventListener("message", ({ data }: MessageEvent<ToLayout>) => {
  if (data.kind === "begin") {
    layout = new Layout(data.count, data.edges);
    steps = 0;
    wanted = true;
    work();
  } else wanted = true;
  if (layout?.isDone) send();
});

function work(): void {
  if (!layout) return;
  const until = performance.now() + SLICE;
  while (!layout.isDone && performance.now() < until) {
    layout.step();
    steps += 1;
  }
  send();
  if (!layout.isDone) setTimeout(work);
}

function send(): void {
  if (!layout || !wanted) return;
  wanted = false;
  const places = layout.places.slice();
  const message: FromLayout = { places, steps, done: layout.isDone };
  postMessage(message, { transfer: [places.buffer] });
}
