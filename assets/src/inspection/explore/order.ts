// Drawing order of the points: first those in the background, then the highlighted ones, each part
// in a fixed shuffled order. In row order the last class would cover all others.
import type { Cloud } from "./cloud.ts";
import type { Window } from "./types.ts";
import { Grid, MOST } from "./grid.ts";

export type Drawn = { rows: Uint32Array<ArrayBuffer>; front: number };

export class Order {
  most: number;
  drawn: Drawn;
  states: Uint8Array | null;
  xy: Uint16Array | null;
  seen: string | null;
  parts: (Grid | Uint32Array)[];
  shuffle: Uint32Array<ArrayBuffer>;
  // most: above this number only the points in the window are drawn, thinned out if needed,
  // background first.
  constructor(most = MOST) {
    this.most = most;
    this.drawn = { rows: new Uint32Array(0), front: 0 };
    this.states = null;
    this.xy = null;
    this.seen = null;
    this.parts = [];
    this.shuffle = new Uint32Array(0);
  }

  // Return the rows to draw, and `front`, where the highlighted ones start. Returns the same object
  // if nothing changed. While points move, the window is the whole map.
  rowsToDraw(cloud: Cloud, states: Uint8Array<ArrayBuffer>, view: Window) {
    const many = cloud.count > this.most,
      window = cloud.share ? undefined : view,
      seen = many && window ? Object.values(window).join() : "";
    if (this.states !== states || this.xy !== cloud.from) {
      this.states = states;
      this.xy = cloud.from;
      this.seen = null;
      const order = this.makeShuffle(cloud.count);
      this.parts = [0, 1].map((bit) => {
        const rows = order.filter((i) => (states[i] & 1) === bit);
        return many ? new Grid(cloud.from, rows) : rows;
      });
    }
    if (this.seen !== seen) {
      const [back, front] = this.parts,
        taken = (part: Grid | Uint32Array, most: number) =>
          part instanceof Grid ? part.take(window, most) : part,
        above = taken(front, this.most),
        below = taken(back, Math.max(1, this.most - above.length)),
        rows = new Uint32Array(below.length + above.length);
      rows.set(below);
      rows.set(above, below.length);
      this.drawn = { rows, front: below.length };
      this.seen = seen;
    }
    return this.drawn;
  }

  makeShuffle(count: number) {
    if (this.shuffle.length === count) return this.shuffle;
    const order = Uint32Array.from({ length: count }, (_, i) => i);
    let seed = 1;
    for (let i = count - 1; i > 0; i--) {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      const j = Math.floor((seed / 2 ** 32) * (i + 1)),
        kept = order[i];
      order[i] = order[j];
      order[j] = kept;
    }
    return (this.shuffle = order);
  }
}
