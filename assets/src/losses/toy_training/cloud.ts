// Points in a plane or in space that the visitor can rotate; all positions come from Python.
import type { Scene } from "./types.ts";
import type { View } from "../../kit/figure/view.ts";
import type { Context, Ink, Theme } from "../../kit/types.ts";
import { drawing, isVector } from "../../kit/dom.ts";
import { INK, halo } from "../../kit/colours.ts";
import { shape } from "../../kit/plot.ts";
import { colourOf, shapeOf } from "./palette.ts";

type Place = [x: number, y: number, depth: number];
type Project = (x: number, y: number, z: number) => Place;
type ToPixels = (x: number, y: number, z: number) => [x: number, y: number];
export type At = (i: number) => Place;
export type Seen = Pick<Scene, "points" | "dim" | "eye" | "window">;

const RAD = Math.PI / 180;

function viewFrom([lon, lat]: number[]) {
  const s = Math.sin(lon * RAD),
    c = Math.cos(lon * RAD),
    t = Math.sin(lat * RAD),
    k = Math.cos(lat * RAD);
  return { right: [-s, c, 0], up: [-t * c, -t * s, k], eye: [k * c, k * s, t] };
}

// Return centre and radius of points (n, D) for the window; in space every rotation fits. The width
// changes in steps, so that it does not jitter.
export function windowOf(points: Float32Array, d: number, unit: boolean, before?: number) {
  if (unit) return { centre: Array(d).fill(0), half: 1 };
  const low = Array(d).fill(Infinity),
    high = Array(d).fill(-Infinity),
    n = points.length / d;
  points.forEach((v, i) => {
    low[i % d] = Math.min(low[i % d], v);
    high[i % d] = Math.max(high[i % d], v);
  });
  const centre = low.map((v, j) => (v + high[j]) / 2);
  let reach = 1e-6;
  for (let i = 0; i < n; i++) {
    const away = centre.map((c, j) => Math.abs(points[i * d + j] - c));
    reach = Math.max(reach, d === 2 ? Math.max(...away) : Math.hypot(...away));
  }
  const half =
    before && reach <= before && reach > before / 1.25
      ? before
      : 1.1 ** Math.ceil(Math.log(reach * 1.02) / Math.log(1.1));
  return { centre, half };
}

// Return the function from indices of points to places of the window, in units of its radius, and
// depth; `place` does the same for coordinates relative to the centre.
export function projector({ points, dim, eye, window }: Seen): At {
  const { centre, half } = window;
  if (dim === 2)
    return (i) => [(points[2 * i] - centre[0]) / half, (points[2 * i + 1] - centre[1]) / half, 0];
  const place = spaceProjector(eye, half);
  return (i) =>
    place(points[3 * i] - centre[0], points[3 * i + 1] - centre[1], points[3 * i + 2] - centre[2]);
}

// Return the projection of coordinates in space, relative to the centre.
function spaceProjector(eye: number[], half: number): Project {
  const { right, up, eye: to } = viewFrom(eye);
  const dot = (v: number[], x: number, y: number, z: number) =>
    (v[0] * x + v[1] * y + v[2] * z) / half;
  return (x, y, z) => [dot(right, x, y, z), dot(up, x, y, z), dot(to, x, y, z)];
}

// Draw the marker of a class with radius r.
function mark(ctx: Context, k: number, theme: Theme, x: number, y: number, r: number) {
  shape(ctx, shapeOf(k), x, y, r);
  ctx.fillStyle = colourOf(k, theme);
  ctx.fill();
  ctx.lineWidth = 0.22 * r;
  ctx.strokeStyle = INK[theme].rim;
  ctx.stroke();
}

// Draw it from an image that is drawn once, since each frame shows hundreds.
const STAMP = 32,
  INNER = 12,
  stamps: Map<string, OffscreenCanvas> = new Map();
const stamp: typeof mark = (ctx, k, theme, x, y, r) => {
  const key = `${theme}${k}`,
    half = (r * STAMP) / 2 / INNER;
  let tile = stamps.get(key);
  if (!tile) {
    tile = new OffscreenCanvas(STAMP, STAMP);
    mark(drawing(tile), k, theme, STAMP / 2, STAMP / 2, INNER);
    stamps.set(key, tile);
  }
  ctx.drawImage(tile, x - half, y - half, 2 * half, 2 * half);
};

// Paint a window.
export function paintCloud(ctx: Context, view: View, scene: Scene, theme: Theme) {
  const ink = INK[theme],
    { dim, labels, highlighted, ring, outline, eye, window } = scene,
    n = labels.length,
    { width } = view;
  if (outline) circle(ctx, view, ink);
  if (dim === 3) {
    const place = spaceProjector(eye, window.half),
      to = (x: number, y: number, z: number) => view.to(place(x, y, z));
    if (outline) globe(ctx, to, ink);
    else box(ctx, to, window.half, scene.axes, ink);
  }
  const at = projector(scene),
    placed = Array.from({ length: n }, (_, i) => {
      const place = at(i);
      return [...view.to(place), place[2]];
    }),
    order = placed.map((_, i) => i);
  if (dim === 3) order.sort((a, b) => placed[a][2] - placed[b][2]);
  const base = Math.max(2.6, Math.min(4.2, width / 95)),
    draw = isVector(ctx) ? mark : stamp,
    shown = (i: number) => !highlighted.size || highlighted.has(labels[i]);
  for (const pass of highlighted.size ? [false, true] : [true]) {
    for (const i of order) {
      if (shown(i) !== pass) continue;
      const [x, y, z] = placed[i],
        near = dim === 3 ? Math.max(-1, Math.min(1, z)) : 0;
      ctx.globalAlpha = pass ? 0.86 + 0.14 * near : 0.1;
      draw(ctx, labels[i], theme, x, y, base * (1 + 0.28 * near));
    }
  }
  ctx.globalAlpha = 1;
  if (ring !== null && ring < n) {
    const [x, y] = placed[ring];
    ctx.strokeStyle = INK.light.selected;
    ctx.lineWidth = 2.4;
    ctx.beginPath();
    ctx.arc(x, y, base + 5, 0, 7);
    ctx.stroke();
  }
}

function circle(ctx: Context, view: View, ink: Ink) {
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.arc(...view.to([0, 0]), view.scale, 0, 7);
  ctx.stroke();
}

function globe(ctx: Context, to: ToPixels, ink: Ink) {
  ctx.strokeStyle = ink.axis;
  const drawRing = (f: (t: number) => [number, number, number]) => {
    ctx.beginPath();
    for (let k = 0; k <= 60; k++) ctx.lineTo(...to(...f(k * 6 * RAD)));
    ctx.stroke();
  };
  for (const lat of [-45, 0, 45])
    drawRing((t) => [
      Math.cos(lat * RAD) * Math.cos(t),
      Math.cos(lat * RAD) * Math.sin(t),
      Math.sin(lat * RAD),
    ]);
  for (const lon of [0, 60, 120])
    drawRing((t) => [
      Math.cos(lon * RAD) * Math.cos(t),
      Math.sin(lon * RAD) * Math.cos(t),
      Math.sin(t),
    ]);
}

// Draw a cube around the centre with the three axes named at its edges.
function box(ctx: Context, to: ToPixels, half: number, axes: string[] | undefined, ink: Ink) {
  const r = half * 0.58,
    corner: (k: number) => [number, number, number] = (k) => [
      (k & 1 ? 1 : -1) * r,
      (k & 2 ? 1 : -1) * r,
      (k & 4 ? 1 : -1) * r,
    ];
  ctx.strokeStyle = ink.axis;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let k = 0; k < 8; k++)
    for (const bit of [1, 2, 4])
      if (!(k & bit)) {
        ctx.moveTo(...to(...corner(k)));
        ctx.lineTo(...to(...corner(k | bit)));
      }
  ctx.stroke();
  if (!axes) return;
  ctx.font = "12px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  (
    [
      [1.14 * r, -r, -r],
      [-r, 1.14 * r, -r],
      [-r, -r, 1.14 * r],
    ] as [number, number, number][]
  ).forEach((v, i) => {
    const [x, y] = to(...v);
    halo(ctx, axes[i], x, y, ink.text, ink.rim);
  });
}
