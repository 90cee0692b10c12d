/**
 * Where the notes of a graph stand: linked ones pull each other, all push each other away, and
 * everything is drawn to the middle. Far groups push as one (Barnes and Hut), so that a step takes
 * n log n and not n². No randomness: the same notes give the same picture.
 */

/** Beyond this ratio of size to distance a group counts as one. */
const THETA = 0.9;
const PUSH = -42;
const LENGTH = 34;
const PULL = 0.045;
/** How fast it cools down: about three hundred steps. */
const COOLING = 0.0228;
const FRICTION = 0.58;
const COLDEST = 0.001;

/** A square with what is in it. Kept in arrays: objects by the thousand would be collected each step. */
interface Squares {
  used: number;
  /** Four children each; 0 is none, a note `n` is `-(n + 1)`. */
  children: Int32Array;
  mass: Float32Array;
  x: Float32Array;
  y: Float32Array;
}

export class Layout {
  /** x and y of each note, one after the other. */
  readonly places: Float32Array;
  private readonly speeds: Float32Array;
  private readonly share: Float32Array;
  private readonly strength: Float32Array;
  private readonly squares: Squares;
  private readonly stack: Float64Array;
  /** Notes that stand in one place, one behind the other. */
  private readonly twins: Int32Array;
  heat = 1;

  /** `edges` are pairs of notes, one after the other. */
  constructor(
    readonly count: number,
    private readonly edges: Int32Array,
  ) {
    this.places = new Float32Array(count * 2);
    this.speeds = new Float32Array(count * 2);
    const room = count * 8 + 64;
    this.squares = {
      used: 0,
      children: new Int32Array(room * 4),
      mass: new Float32Array(room),
      x: new Float32Array(room),
      y: new Float32Array(room),
    };
    this.stack = new Float64Array(4 * 256);
    this.twins = new Int32Array(count);
    this.share = new Float32Array(edges.length / 2);
    this.strength = new Float32Array(edges.length / 2);
    this.begin();
    this.weigh();
  }

  get isDone(): boolean {
    return this.heat < COLDEST;
  }

  /** One step of the way. */
  step(): void {
    this.heat -= this.heat * COOLING;
    this.pull();
    this.push();
    this.move();
  }

  /** A spiral in which neighbours in the list are near each other. */
  private begin(): void {
    const angle = Math.PI * (3 - Math.sqrt(5));
    for (let i = 0; i < this.count; i++) {
      const radius = 12 * Math.sqrt(i + 0.5);
      this.places[2 * i] = radius * Math.cos(i * angle);
      this.places[2 * i + 1] = radius * Math.sin(i * angle);
    }
  }

  /** A note with many links is moved less by each, or it would never rest. */
  private weigh(): void {
    const degree = new Uint32Array(this.count);
    for (const note of this.edges) degree[note] = (degree[note] ?? 0) + 1;
    for (let e = 0; e < this.share.length; e++) {
      const from = degree[this.edges[2 * e] ?? 0] ?? 1;
      const to = degree[this.edges[2 * e + 1] ?? 0] ?? 1;
      this.share[e] = from / (from + to);
      this.strength[e] = Math.max(PULL, 1 / Math.min(from, to));
    }
  }

  private pull(): void {
    const { places: p, speeds: v, edges } = this;
    for (let e = 0; e < this.share.length; e++) {
      const a = 2 * (edges[2 * e] as number);
      const b = 2 * (edges[2 * e + 1] as number);
      const dx = (p[b] as number) + (v[b] as number) - (p[a] as number) - (v[a] as number) || 1e-3;
      const dy = (p[b + 1] as number) + (v[b + 1] as number) - (p[a + 1] as number) - (v[a + 1] as number) || 1e-3;
      const distance = Math.sqrt(dx * dx + dy * dy);
      const force = ((distance - LENGTH) / distance) * this.heat * (this.strength[e] as number);
      const share = this.share[e] as number;
      v[b] = (v[b] as number) - dx * force * share;
      v[b + 1] = (v[b + 1] as number) - dy * force * share;
      v[a] = (v[a] as number) + dx * force * (1 - share);
      v[a + 1] = (v[a + 1] as number) + dy * force * (1 - share);
    }
  }

  private move(): void {
    const { places: p, speeds: v } = this;
    const home = 0.02 * this.heat;
    for (let i = 0; i < p.length; i++) {
      const speed = ((v[i] as number) - (p[i] as number) * home) * FRICTION;
      v[i] = speed;
      p[i] = (p[i] as number) + speed;
    }
  }

  private push(): void {
    const [x, y, size] = this.plant();
    for (let i = 0; i < this.count; i++) this.pushOne(i, x, y, size);
  }

  /** Builds the squares anew; answers with the outermost one. */
  private plant(): [number, number, number] {
    const { places: p, squares: s } = this;
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < p.length; i += 2) {
      left = Math.min(left, p[i] as number);
      right = Math.max(right, p[i] as number);
      top = Math.min(top, p[i + 1] as number);
      bottom = Math.max(bottom, p[i + 1] as number);
    }
    const size = Math.max(right - left, bottom - top, 1) * 1.001;
    s.used = 0;
    this.square();
    this.twins.fill(-1);
    for (let i = 0; i < this.count; i++) this.insert(i, left, top, size);
    this.weighSquare(0);
    return [left, top, size];
  }

  private square(): number {
    const s = this.squares;
    const at = s.used++;
    s.children.fill(0, at * 4, at * 4 + 4);
    return at;
  }

  private insert(note: number, x: number, y: number, size: number): void {
    const { places: p, squares: s } = this;
    const nx = p[2 * note] as number;
    const ny = p[2 * note + 1] as number;
    let at = 0;
    for (let depth = 0; ; depth++) {
      size /= 2;
      const right = nx >= x + size ? 1 : 0;
      const below = ny >= y + size ? 1 : 0;
      x += right * size;
      y += below * size;
      const slot = at * 4 + below * 2 + right;
      const there = s.children[slot] as number;
      if (there === 0) {
        s.children[slot] = -(note + 1);
        return;
      }
      if (there > 0) {
        at = there;
        continue;
      }
      // A note is there already. Two in one place would divide for ever, and the room is bounded.
      const other = -there - 1;
      if (depth > 30 || (s.used + 1) * 4 > s.children.length) {
        this.twins[note] = this.twins[other] as number;
        this.twins[other] = note;
        return;
      }
      const inner = this.square();
      s.children[slot] = inner;
      const half = size / 2;
      const otherRight = (p[2 * other] as number) >= x + half ? 1 : 0;
      const otherBelow = (p[2 * other + 1] as number) >= y + half ? 1 : 0;
      s.children[inner * 4 + otherBelow * 2 + otherRight] = there;
      at = inner;
    }
  }

  /** How much is in a square, and where its middle is. */
  private weighSquare(at: number): void {
    const { places: p, squares: s } = this;
    let [mass, x, y] = [0, 0, 0];
    for (let slot = at * 4; slot < at * 4 + 4; slot++) {
      const child = s.children[slot] as number;
      if (child > 0) {
        this.weighSquare(child);
        const inner = s.mass[child] as number;
        mass += inner;
        x += inner * (s.x[child] as number);
        y += inner * (s.y[child] as number);
      } else if (child < 0) {
        for (let note = -child - 1; note >= 0; note = this.twins[note] as number) {
          mass += 1;
          x += p[2 * note] as number;
          y += p[2 * note + 1] as number;
        }
      }
    }
    s.mass[at] = mass;
    s.x[at] = mass > 0 ? x / mass : 0;
    s.y[at] = mass > 0 ? y / mass : 0;
  }

  private pushOne(note: number, _x: number, _y: number, size: number): void {
    const { places: p, squares: s, stack } = this;
    const nx = p[2 * note] as number;
    const ny = p[2 * note + 1] as number;
    let [fx, fy, top] = [0, 0, 0];
    stack[top++] = 0;
    stack[top++] = size;
    while (top > 0) {
      const width = stack[--top] as number;
      const at = stack[--top] as number;
      const dx = (s.x[at] as number) - nx;
      const dy = (s.y[at] as number) - ny;
      const square = dx * dx + dy * dy;
      if (width * width < THETA * THETA * square) {
        const force = (PUSH * this.heat * (s.mass[at] as number)) / square;
        fx += dx * force;
        fy += dy * force;
        continue;
      }
      for (let slot = at * 4; slot < at * 4 + 4; slot++) {
        const child = s.children[slot] as number;
        if (child > 0) {
          stack[top++] = child;
          stack[top++] = width / 2;
        } else if (child < 0) {
          for (let other = -child - 1; other >= 0; other = this.twins[other] as number) {
            if (other === note) continue;
            // Two in one place are told apart by their numbers.
            const ox = (p[2 * other] as number) - nx || (other - note) * 1e-3;
            const oy = (p[2 * other + 1] as number) - ny || 1e-3;
            const force = (PUSH * this.heat) / Math.max(ox * ox + oy * oy, 1);
            fx += ox * force;
            fy += oy * force;
          }
        }
      }
    }
    this.speeds[2 * note] = (this.speeds[2 * note] as number) + fx;
    this.speeds[2 * note + 1] = (this.speeds[2 * note + 1] as number) + fy;
  }
}
