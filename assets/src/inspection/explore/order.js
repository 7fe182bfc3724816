// Drawing order of the points: first those in the background, then the highlighted ones, each part
// in a fixed shuffled order. In row order the last class would cover all others.
/** @import { Cloud } from "./cloud.js" */
/** @import { Window } from "./types.js" */
import { Grid, MOST } from "./grid.js";

/** @typedef {{ rows: Uint32Array<ArrayBuffer>, front: number }} Drawn */

export class Order {
  // most: above this number only the points in the window are drawn, thinned out if needed,
  // background first.
  constructor(most = MOST) {
    this.most = most;
    /** @type {Drawn} */
    this.drawn = { rows: new Uint32Array(0), front: 0 };
    /** @type {Uint8Array | null} */
    this.states = null;
    /** @type {Uint16Array | null} */
    this.xy = null;
    /** @type {string | null} */
    this.seen = null;
    /** @type {(Grid | Uint32Array)[]} */
    this.parts = [];
    this.shuffle = new Uint32Array(0);
  }

  // Return the rows to draw, and `front`, where the highlighted ones start. Returns the same object
  // if nothing changed. While points move, the window is the whole map.
  /**
   * @param {Cloud} cloud
   * @param {Uint8Array<ArrayBuffer>} states
   * @param {Window} view
   */
  rowsToDraw(cloud, states, view) {
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
        taken = (/** @type {Grid | Uint32Array} */ part, /** @type {number} */ most) =>
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

  /** @param {number} count */
  makeShuffle(count) {
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
