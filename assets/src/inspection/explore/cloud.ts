// The points of a map as Python sends them (pages/inspection/explore/service.py), and
// queries about them.
import type { Points, Window } from "./types.ts";
import { Grid, MOST } from "./grid.ts";
export const STEPS = 65535;
const MOST_CORNERS = 64;

export class Cloud {
  count: number;
  every: Uint32Array | null;
  private range: number[] | undefined;
  grid: { xy: Uint16Array; cells: Grid } | null;
  group: Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>;
  indices: Int32Array<ArrayBuffer>;
  classes: { name: string; label: number; row: number; count: number; colour: string }[];
  from: Uint16Array<ArrayBuffer>;
  to: Uint16Array<ArrayBuffer>;
  share: number;
  // Points: {xy, group, steps_of_indices, ...}, where xy is uint16 (n, 2), y up, and group is the
  // index of a point's class in `classes`.
  constructor({
    xy,
    group,
    index_steps,
    label_steps,
    central,
    counts,
    colours,
    names,
    shapes,
  }: Points) {
    const sums = (steps: Int32Array) => {
      let sum = 0;
      return Int32Array.from(steps, (d) => (sum += d));
    };
    this.count = shapes.xy[0];
    this.every = null;
    this.grid = null;
    this.group = group;
    this.indices = sums(index_steps);
    const labels = sums(label_steps);
    this.classes = names.map((name, k) => ({
      name,
      label: labels[k],
      row: central[k],
      count: counts[k],
      colour: colours[k % colours.length],
    }));
    this.from = xy;
    this.to = xy;
    this.share = 0; // position between two frames, 0..1
  }

  x(i: number) {
    return (this.from[2 * i] + (this.to[2 * i] - this.from[2 * i]) * this.share) / STEPS;
  }
  y(i: number) {
    return (
      (this.from[2 * i + 1] + (this.to[2 * i + 1] - this.from[2 * i + 1]) * this.share) / STEPS
    );
  }
  row(index: number) {
    return this.indices.indexOf(index);
  }

  // Range of all points along both axes, with a margin.
  get extent() {
    return (this.range ??= [0, 1].map((axis) => {
      let low = STEPS,
        high = 0;
      for (let i = axis; i < this.from.length; i += 2) {
        low = Math.min(low, this.from[i]);
        high = Math.max(high, this.from[i]);
      }
      return Math.min(1, (high - low) / STEPS + 0.06);
    }));
  }

  // Return the rows that may lie in a window, in any order: all of them if they are few, else those
  // in its cells.
  near(window: Window) {
    if (this.count <= MOST || this.share) return (this.every ??= rowsTo(this.count));
    if (this.grid?.xy !== this.from)
      this.grid = {
        xy: this.from,
        cells: new Grid(this.from, (this.every ??= rowsTo(this.count))),
      };
    return this.grid.cells.take(window);
  }

  // Return the nearest point accepted by `wanted` within `reach` of a place (all in shares of the
  // square), or -1.
  nearest(px: number, py: number, reach: number, wanted: (row: number) => unknown) {
    let best = -1,
      least = reach * reach;
    const window = { left: px - reach, right: px + reach, bottom: py - reach, top: py + reach };
    for (const i of this.near(window)) {
      const dx = this.x(i) - px,
        dy = this.y(i) - py,
        d = dx * dx + dy * dy;
      if ((d < least || (d === least && i > best)) && wanted(i)) {
        best = i;
        least = d;
      }
    }
    return best;
  }

  // Return the nearest point in the window within the quadrant of an arrow key.
  nearestInDirection(
    [px, py]: number[],
    [dx, dy]: number[],
    window: Window,
    wanted: (row: number) => unknown,
    except: number,
  ) {
    let best = -1,
      least = Infinity;
    for (let i = 0; i < this.count; i++) {
      const x = this.x(i),
        y = this.y(i);
      if (
        i === except ||
        x < window.left ||
        x > window.right ||
        y < window.bottom ||
        y > window.top ||
        !wanted(i)
      )
        continue;
      const along = (x - px) * dx + (y - py) * dy,
        across = Math.abs((x - px) * dy) + Math.abs((y - py) * dx);
      if (along > 0 && across <= along && along + across < least) {
        best = i;
        least = along + across;
      }
    }
    return best;
  }

  // Return up to `most` + 1 rows in the window, in any order.
  within(window: Window, most: number) {
    const found: number[] = [];
    for (const i of this.near(window)) {
      if (found.length > most) break;
      const x = this.x(i),
        y = this.y(i);
      if (x >= window.left && x <= window.right && y >= window.bottom && y <= window.top)
        found.push(i);
    }
    return found;
  }

  // Return 1 for each point inside the polygon [x0, y0, x1, y1, ...] of integer corners (winding
  // number not 0). The integer arithmetic is that of dmlcore.figures.maps.Sheet.enclosed, so the
  // results are identical.
  maskInside(polygon: ArrayLike<number>) {
    const mask = new Uint8Array(this.count),
      count = polygon.length / 2,
      points = this.from;
    let low = STEPS,
      high = 0;
    for (let k = 1; k < polygon.length; k += 2) {
      low = Math.min(low, polygon[k]);
      high = Math.max(high, polygon[k]);
    }
    for (let i = 0; i < this.count; i++) {
      const px = points[2 * i],
        py = points[2 * i + 1];
      if (py < low || py >= high) continue;
      let winding = 0;
      for (let k = 0, j = count - 1; k < count; j = k++) {
        const x0 = polygon[2 * j],
          y0 = polygon[2 * j + 1],
          x1 = polygon[2 * k],
          y1 = polygon[2 * k + 1];
        if (y0 <= py === y1 <= py) continue;
        const left = (x1 - x0) * (py - y0) - (px - x0) * (y1 - y0);
        if (y1 > y0) {
          if (left > 0) winding++;
        } else if (left < 0) winding--;
      }
      if (winding) mask[i] = 1;
    }
    return mask;
  }
}

const rowsTo = (count: number) => Uint32Array.from({ length: count }, (_, i) => i);

// Simplify a hand-drawn line [[x, y], ...] in shares of the square to at most 64 integer corners,
// the most important ones.
export function corners(line: number[][]) {
  const points = line.map((p) => p.map((v) => Math.round(Math.min(Math.max(v, 0), 1) * STEPS)));
  const kept = new Set([0, points.length - 1]),
    spans: { a: number; b: number; best: number; most: number }[] = [];
  const offer = (a: number, b: number) => {
    // point of a segment farthest from its chord
    let best = -1,
      most = 0;
    const [x0, y0] = points[a],
      [x1, y1] = points[b],
      length = Math.hypot(x1 - x0, y1 - y0);
    for (let k = a + 1; k < b; k++) {
      const [x, y] = points[k];
      const away = length
        ? Math.abs((x1 - x0) * (y - y0) - (x - x0) * (y1 - y0)) / length
        : Math.hypot(x - x0, y - y0);
      if (away > most) {
        best = k;
        most = away;
      }
    }
    if (best >= 0) spans.push({ a, b, best, most });
  };
  offer(0, points.length - 1);
  while (kept.size < MOST_CORNERS && spans.length) {
    spans.sort((one, other) => one.most - other.most);
    const { a, b, best } = spans.pop() as (typeof spans)[number];
    kept.add(best);
    offer(a, best);
    offer(best, b);
  }
  return Uint16Array.from([...kept].sort((a, b) => a - b).flatMap((k) => points[k]));
}

// Return one bit for each of `count` points, set for the given rows.
export function marked(count: number, rows: Iterable<number>) {
  const bytes = new Uint8Array(Math.ceil(count / 8));
  for (const row of rows) bytes[row >> 3] |= 1 << (row & 7);
  return bytes;
}
// Return bytes as base64 text, and undo numpy.packbits(..., bitorder="little").
export const packed = (array: ArrayBufferView) =>
  btoa(String.fromCharCode(...new Uint8Array(array.buffer)));
export const unpacked = (bits: Uint8Array, count: number) =>
  Uint8Array.from({ length: count }, (_, i) => (bits[i >> 3] >> (i & 7)) & 1);
