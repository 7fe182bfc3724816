// Points by grid cell: of a million points only those in the window are drawn, and no more of these
// than are distinguishable.
import type { Window } from "./types.ts";
export const MOST = 150_000; // points drawn or searched at a time
const CELLS = 128, // cells per side
  BITS = 9; // position within a cell, in bits of 16
const WHOLE = { left: 0, right: 1, bottom: 0, top: 1 };

export class Grid {
  starts: Uint32Array<ArrayBuffer>;
  rows: Uint32Array<ArrayBuffer>;
  // xy: positions (n, 2); rows: rows of the points, in an order independent of their content, so
  // that the first ones of a cell are a random sample.
  constructor(xy: Uint16Array, rows: Uint32Array) {
    const cell = (i: number) => (xy[2 * i + 1] >> BITS) * CELLS + (xy[2 * i] >> BITS);
    this.starts = new Uint32Array(CELLS * CELLS + 1);
    for (const i of rows) this.starts[cell(i) + 1]++;
    for (let c = 0; c < CELLS * CELLS; c++) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice();
    this.rows = new Uint32Array(rows.length);
    for (const i of rows) this.rows[next[cell(i)]++] = i;
  }

  // Return the cells that a window touches, row by row: [first, end] of each row.
  lines({ left, right, bottom, top }: Window = WHOLE) {
    const at = (share: number) => Math.min(CELLS - 1, Math.max(0, Math.floor(share * CELLS)));
    const lines = [];
    for (let y = at(bottom); y <= at(top); y++)
      lines.push([y * CELLS + at(left), y * CELLS + at(right) + 1]);
    return lines;
  }

  // Return how many points are in the cells of a window.
  count(window?: Window) {
    return this.lines(window).reduce((sum, [a, b]) => sum + this.starts[b] - this.starts[a], 0);
  }

  // Return rows in the cells of a window, about `most` if there are more: the same share of each
  // cell, at least one. A smaller window keeps the points of a larger one.
  take(window?: Window, most: number = Infinity) {
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
