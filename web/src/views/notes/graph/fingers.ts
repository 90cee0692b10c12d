/** Two fingers on the graph: what is between them stays between them. */
import { type Camera, zoomed } from "./camera";

interface Point {
  x: number;
  y: number;
}

export class Fingers {
  private readonly down = new Map<number, Point>();

  /** Whether there are two, and the picture follows both. */
  get pinch(): boolean {
    return this.down.size === 2;
  }

  press(event: PointerEvent): void {
    this.down.set(event.pointerId, pointOf(event));
  }

  lift(event: PointerEvent): void {
    this.down.delete(event.pointerId);
  }

  /** What is looked at after one of the two has moved. */
  move(event: PointerEvent, camera: Camera, width: number, height: number): Camera {
    if (!this.down.has(event.pointerId)) return camera;
    const before = this.pair();
    this.down.set(event.pointerId, pointOf(event));
    const after = this.pair();
    const near = zoomed(camera, width, height, after.apart / Math.max(1, before.apart), before.x, before.y);
    return { ...near, x: near.x - (after.x - before.x) / near.zoom, y: near.y - (after.y - before.y) / near.zoom };
  }

  /** The middle of the two, and how far apart they are. */
  private pair(): Point & { apart: number } {
    const [a, b] = [...this.down.values()] as [Point, Point];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.hypot(a.x - b.x, a.y - b.y) };
  }
}

const pointOf = (event: PointerEvent): Point => ({ x: event.offsetX, y: event.offsetY });
