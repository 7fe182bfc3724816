// Points by the cell of a grid that they lie in: of a million only those in the window are drawn,
// and of these no more than can be told apart.
/** @import { Window } from "./types.js" */
export const MOST = 150_000; // points that are drawn, or looked through, at once
const CELLS = 128, // along each side
  BITS = 9; // of a place within a cell, of 16
const WHOLE = { left: 0, right: 1, bottom: 0, top: 1 };

export class Grid {
  // xy: places (n, 2); rows: those of the points that it holds, in an order that says nothing, so
  // that the first of a cell stand for all of it.
  /**
   * @param {Uint16Array} xy
   * @param {Uint32Array} rows
   */
  constructor(xy, rows) {
    const cell = (/** @type {number} */ i) => (xy[2 * i + 1] >> BITS) * CELLS + (xy[2 * i] >> BITS);
    this.starts = new Uint32Array(CELLS * CELLS + 1);
    for (const i of rows) this.starts[cell(i) + 1]++;
    for (let c = 0; c < CELLS * CELLS; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice();
    this.rows = new Uint32Array(rows.length);
    for (const i of rows) this.rows[next[cell(i)]++] = i;
  }

  // The cells that a window touches, line by line: [first, past] of each line.
  /** @param {Window} window */
  lines({ left, right, bottom, top } = WHOLE) {
    const at = (/** @type {number} */ share) =>
      Math.min(CELLS - 1, Math.max(0, Math.floor(share * CELLS)));
    const lines = [];
    for (let y = at(bottom); y <= at(top); y++)
      lines.push([y * CELLS + at(left), y * CELLS + at(right) + 1]);
    return lines;
  }

  // How many points the cells of a window hold.
  /** @param {Window} [window] */
  count(window) {
    return this.lines(window).reduce((sum, [a, b]) => sum + this.starts[b] - this.starts[a], 0);
  }

  // Rows in the cells of a window, about `most` of them where there are more: of each cell the same
  // share, and one at least. A closer window has what a wider one had.
  /**
   * @param {Window} [window]
   * @param {number} [most]
   */
  take(window, most = Infinity) {
    const share = Math.min(1, most / this.count(window)),
      taken = [];
    for (const [first, past] of this.lines(window))
      for (let c = first; c < past; c++) {
        const a = this.starts[c],
          held = this.starts[c + 1] - a;
        if (held) taken.push(this.rows.subarray(a, a + Math.max(1, Math.floor(held * share))));
      }
    const rows = new Uint32Array(taken.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of taken) {
      rows.set(part, at);
      at += part.length;
    }
    return rows;
  }
}
