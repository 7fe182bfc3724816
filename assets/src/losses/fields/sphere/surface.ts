// Coloured sphere on a 2-D canvas, pixel by pixel. Once per answer, Python's table over latitude
// and longitude is resampled onto the faces of a cube, where two divisions find the cell of a
// direction; so a rotation needs neither trigonometry nor Python. (WebGL2 was tried: slower
// wherever the browser renders in software.)
import type { Look, SphereAnswer } from "./types.ts";
import type { Theme } from "../../../kit/types.ts";
import { drawing } from "../../../kit/dom.ts";
import { INK, rampColour, rgb } from "../../../kit/colours.ts";

export const FILL = 0.42; // radius of the sphere, as a share of the frame's side
const COARSE = 128,
  FINE = 256; // cells per edge of the cube, during a gesture and at rest
const STRIPE = 9; // distance of the hatching lines, CSS px

const maps: Map<string, { from: Uint32Array; east: Uint8Array; north: Uint8Array }> = new Map();

// For each cell of the cube: the corner of the table below it, and its offset towards the next row
// and column (0..255).
function lookup(n: number, rows: number, columns: number) {
  const key = `${n} ${rows}`;
  const known = maps.get(key);
  if (known) return known;
  const from = new Uint32Array(6 * n * n),
    east = new Uint8Array(6 * n * n),
    north = new Uint8Array(6 * n * n);
  for (let face = 0, cell = 0; face < 6; face++) {
    const axis = face >> 1,
      sign = face & 1 ? -1 : 1,
      d = [0, 0, 0];
    for (let t = 0; t < n; t++) {
      for (let s = 0; s < n; s++, cell++) {
        d[axis] = sign;
        d[(axis + 1) % 3] = (2 * s + 1) / n - 1;
        d[(axis + 2) % 3] = (2 * t + 1) / n - 1;
        const x = (Math.atan2(d[1], d[0]) / (2 * Math.PI) + 0.5) * (columns - 1),
          y = (Math.atan2(d[2], Math.hypot(d[0], d[1])) / Math.PI + 0.5) * (rows - 1);
        const i = Math.min(Math.floor(x), columns - 2),
          j = Math.min(Math.floor(y), rows - 2);
        from[cell] = j * columns + i;
        east[cell] = Math.round(255 * (x - i));
        north[cell] = Math.round(255 * (y - j));
      }
    }
  }
  const made = { from, east, north };
  maps.set(key, made);
  return made;
}

// layout of ImageData viewed as Uint32
const packed = ([r, g, b]: number[]) => (255 << 24) | (b << 16) | (g << 8) | r;
const mixed = (a: number[], b: number[], t: number) =>
  a.map((x, i) => Math.round(x + (b[i] - x) * t));

export class Surface {
  readonly canvas = new OffscreenCanvas(1, 1);
  depth: Float32Array<ArrayBuffer>;
  spans: Int32Array<ArrayBuffer>;
  context: OffscreenCanvasRenderingContext2D;
  image: ImageData;
  words: Uint32Array<ArrayBuffer>;

  n = 0;
  plain: Uint32Array | undefined;
  striped = new Uint32Array();
  side = 0;

  // Resample after a new answer, another theme, or a switch of the region.
  load(answer: SphereAnswer, theme: Theme, region: boolean) {
    const { rows, columns, shade, active: bits } = answer,
      n = rows > 100 ? FINE : COARSE,
      { from, east, north } = lookup(n, rows, columns);
    const veil = rgb(INK[theme].veil),
      line = rgb(INK[theme].hatch);
    const ramp = Array.from({ length: 256 }, (_, i) => rampColour(i / 255, theme)),
      bare = Uint32Array.from(ramp, (c) => packed(c));
    const veiled = Uint32Array.from(ramp, (c) => packed(mixed(c, veil, 0.68))),
      struck = Uint32Array.from(ramp, (c) => packed(mixed(mixed(c, veil, 0.68), line, 0.45)));
    const mask = new Uint8Array(rows * columns);
    for (let i = 0; i < mask.length; i++)
      mask[i] = !region || bits[i >> 3] & (128 >> (i & 7)) ? 255 : 0;
    const count = 6 * n * n,
      plain = new Uint32Array(count),
      striped = new Uint32Array(count);
    for (let c = 0; c < count; c++) {
      const k = from[c],
        e = east[c],
        u = north[c],
        w = 255 - e,
        v = 255 - u;
      const at = (table: Uint8Array) =>
        v * (w * table[k] + e * table[k + 1]) +
        u * (w * table[k + columns] + e * table[k + columns + 1]);
      const value = (at(shade) / 65025 + 0.5) | 0,
        active = at(mask) > 127.5 * 65025;
      plain[c] = active ? bare[value] : veiled[value];
      striped[c] = active ? bare[value] : struck[value];
    }
    this.n = n;
    this.plain = plain;
    this.striped = striped;
  }

  // Return the depth of the sphere at each pixel, -1 outside, and the start and end of each row.
  shape(side: number) {
    if (this.side === side) return;
    const r = FILL * side,
      c = side / 2;
    this.side = side;
    this.depth = new Float32Array(side * side);
    this.spans = new Int32Array(2 * side);
    for (let y = 0; y < side; y++) {
      const v = (c - y - 0.5) / r,
        half = 1 - v * v > 0 ? r * Math.sqrt(1 - v * v) : 0,
        first = Math.ceil(c - half - 0.5),
        last = Math.floor(c + half - 0.5);
      this.spans[2 * y] = first;
      this.spans[2 * y + 1] = half ? last : first - 1;
      for (let x = first; half && x <= last; x++) {
        const u = (x + 0.5 - c) / r;
        this.depth[y * side + x] = Math.sqrt(Math.max(0, 1 - u * u - v * v));
      }
    }
    this.canvas.width = this.canvas.height = side;
    this.context = drawing(this.canvas);
    this.image = this.context.createImageData(side, side);
    this.words = new Uint32Array(this.image.data.buffer);
  }

  // Paint the sphere. side: in pixels; scale: pixels of this canvas per CSS pixel.
  draw({ right, up, eye }: Look, side: number, scale: number) {
    if (!this.plain) return;
    this.shape(side);
    const { n, plain, striped, depth, spans, words } = this,
      r = FILL * side,
      c = side / 2,
      half = n / 2,
      face = n * n,
      last = n - 1;
    const period = Math.round(STRIPE * scale),
      thick = Math.max(1, Math.round(scale)),
      [rx, ry, rz] = right,
      [ex, ey, ez] = eye;
    for (let y = 0; y < side; y++) {
      const v = (c - y - 0.5) / r,
        vx = v * up[0],
        vy = v * up[1],
        vz = v * up[2],
        row = y * side,
        to = spans[2 * y + 1];
      for (let x = spans[2 * y]; x <= to; x++) {
        const u = (x + 0.5 - c) / r,
          w = depth[row + x];
        const dx = u * rx + vx + w * ex,
          dy = u * ry + vy + w * ey,
          dz = u * rz + vz + w * ez;
        const ax = dx < 0 ? -dx : dx,
          ay = dy < 0 ? -dy : dy,
          az = dz < 0 ? -dz : dz;
        let base, s, t;
        if (ax >= ay && ax >= az) {
          base = dx > 0 ? 0 : 1;
          s = dy / ax;
          t = dz / ax;
        } else if (ay >= az) {
          base = dy > 0 ? 2 : 3;
          s = dz / ay;
          t = dx / ay;
        } else {
          base = dz > 0 ? 4 : 5;
          s = dx / az;
          t = dy / az;
        }
        let i = ((s + 1) * half) | 0,
          j = ((t + 1) * half) | 0;
        if (i > last) i = last;
        if (j > last) j = last;
        const cell = base * face + j * n + i;
        words[row + x] = (x + y) % period < thick ? striped[cell] : plain[cell];
      }
    }
    this.context.putImageData(this.image, 0, 0);
  }
}
