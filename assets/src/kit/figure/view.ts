// Views: mappings between the places of a figure and the pixels of its canvas.
import type { Axis } from "./axes.ts";
import { position, valueAt } from "./axes.ts";

/** A rectangle of a canvas, in pixels. */
export interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Mapping between places and pixels of one canvas; pixels are CSS pixels, y down. */
export interface View {
  width: number;
  height: number;
  area: Area; // part of the canvas that shows places; axes are drawn around it
  x: Axis; // ranges that the area shows along x and y
  y: Axis;
  scale: number; // pixels per unit; along x if the axes differ
  to(place: readonly number[]): [number, number];
  from(pixel: readonly number[]): [number, number];
  window?: readonly number[]; // set by `plane`: such a view can be moved and zoomed
  open?: boolean; // handles may be dragged beyond the canvas
}

/** Limits of zooming: half the shorter side of a window, in units of the places. */
export interface ZoomLimits {
  closest?: number;
  farthest?: number;
  digits?: number; // decimals of a zoomed window, default 4
}

/** Space around the area of a chart, in pixels. */
export type Margin = Area;

const DIGITS = 4;

/** Round a coordinate to four decimals, as addresses and requests carry it. */
export const rounded = (v: number): number => Number(v.toFixed(DIGITS));

/**
 * Return the view of a plane, y up, with square units. `window` is [x, y, half]: the centre, and
 * half the extent along the shorter side of the canvas.
 */
export function plane(window: readonly number[], width: number, height = width): View {
  const [x, y, half] = window,
    scale = Math.min(width, height) / (2 * half),
    w = width === height ? half : width / (2 * scale),
    h = width === height ? half : height / (2 * scale);
  return {
    width,
    height,
    scale,
    window,
    x: { low: x - w, high: x + w },
    y: { low: y - h, high: y + h },
    area: { left: 0, top: 0, right: width, bottom: height },
    to: ([px, py]) => [(px - x + w) * scale, (y + h - py) * scale],
    from: ([u, v]) => [x - w + u / scale, y + h - v / scale],
  };
}

/** Return the view of a chart: two axes of any scale inside `margin`, y up. */
export function chart(
  { x, y }: { x: Axis; y: Axis },
  width: number,
  height: number,
  margin: Margin = { left: 40, top: 10, right: 10, bottom: 32 },
): View {
  const { left, top } = margin,
    right = width - margin.right,
    bottom = height - margin.bottom,
    px = position(x, left, right),
    py = position(y, bottom, top);
  return {
    width,
    height,
    x,
    y,
    scale: (right - left) / (x.high - x.low),
    area: { left, top, right, bottom },
    to: ([u, v]) => [px(u), py(v)],
    from: ([u, v]) => [
      valueAt(x, (u - left) / (right - left)),
      valueAt(y, (bottom - v) / (bottom - top)),
    ],
  };
}

/** Return the view of a figure whose places are pixels of its canvas, y down. */
export const pixels = (width: number, height: number): View => ({
  width,
  height,
  scale: 1,
  x: { low: 0, high: width },
  y: { low: height, high: 0 },
  area: { left: 0, top: 0, right: width, bottom: height },
  to: ([x, y]) => [x, y],
  from: ([x, y]) => [x, y],
});

/**
 * Return a window zoomed by `factor` (below 1: closer) about its centre, or about a place, which
 * then stays where it is on the canvas.
 */
export function zoomed(
  [x, y, half]: readonly number[],
  factor: number,
  { closest = 0.05, farthest = 50, digits = DIGITS }: ZoomLimits = {},
  about: readonly number[] = [x, y],
): number[] {
  const round = (v: number) => Number(v.toFixed(digits)),
    to = round(Math.min(Math.max(half * factor, closest), farthest)),
    k = to / half;
  return [about[0] + (x - about[0]) * k, about[1] + (y - about[1]) * k, to].map(round);
}

/** Return the window of a plane after its content has moved by (dx, dy) pixels. */
export function panned({ window, scale }: View, dx: number, dy: number, digits = DIGITS): number[] {
  if (!window) throw new TypeError("only the view of a plane can be moved");
  return [window[0] - dx / scale, window[1] + dy / scale, window[2]].map((v) =>
    Number(v.toFixed(digits)),
  );
}

/** Return a window that shows all places with some space around them. */
export function enclosing(places: readonly (readonly number[])[]): number[] {
  const span = [0, 1].map((axis) => {
    const values = places.map((place) => place[axis]);
    return [Math.min(...values), Math.max(...values)];
  });
  const widest = Math.max(...span.map(([low, high]) => high - low), 0.2);
  return [...span.map(([low, high]) => rounded((low + high) / 2)), rounded(1.3 * widest)];
}
