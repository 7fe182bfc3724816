// Unit circle: a ring coloured by energy, tangential forces around it, the three points and their
// forces.
import type { Label, Scene, SphereAnswer } from "./types.ts";
import type { View } from "../../../kit/figure/view.ts";
import type { Context, Ink, Point, Theme } from "../../../kit/types.ts";
import { POINTS, halo, rampColour } from "../../../kit/colours.ts";
import { pixels } from "../../../kit/figure/view.ts";
import { edges } from "../../../kit/plane/layers.ts";
import { mark, write } from "./marks.ts";

const RAD = Math.PI / 180;
const RADIUS = 0.3; // radius of the circle, as a share of the frame's side

const onCircle = (size: number, degrees: number, r: number = RADIUS * size): [number, number] => [
  size / 2 + r * Math.cos(degrees * RAD),
  size / 2 - r * Math.sin(degrees * RAD),
];

/** Return the view of the circle; its places are angles in degrees. */
export const circleView = (width: number, height: number): View => ({
  ...pixels(width, height),
  open: true,
  to: ([degrees]) => onCircle(width, degrees),
  from: ([x, y]) => [Math.atan2(width / 2 - y, x - width / 2) / RAD, 0],
});

/** Draw the circle; without an answer only its axes and points. */
export function paintCircle(
  ctx: Context,
  size: number,
  scene: Scene,
  answer: SphereAnswer | null,
  ink: Ink,
  theme: Theme,
): void {
  const r = RADIUS * size,
    c = size / 2;
  axes(ctx, size, r, ink);
  if (answer?.ring) ring(ctx, c, r, answer, scene, theme, ink);
  ctx.lineWidth = 1.5;
  edges(ctx, (name) => onCircle(size, scene[name][0]), ink);
  if (answer?.ring && scene.arrows) whirl(ctx, c, r + 27, answer.whirl, ink);
  const labels: Label[] = [];
  if (answer?.ring)
    POINTS.forEach((name, i) => force(ctx, size, scene, name, i, answer, ink, labels));
  for (const name of POINTS)
    mark(ctx, name, onCircle(size, scene[name][0]), name === scene.probe, ink);
  write(ctx, labels, size, ink);
}

function axes(ctx: Context, size: number, r: number, ink: Ink) {
  ctx.strokeStyle = ink.grid;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (const angle of [0, 90, 180, 270]) {
    ctx.moveTo(size / 2, size / 2);
    ctx.lineTo(...onCircle(size, angle, r - 10));
  }
  ctx.stroke();
  ctx.font = "11px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const angle of [0, 90, 180, -90])
    halo(ctx, `${angle}°`.replace("-", "−"), ...onCircle(size, angle, r - 26), ink.text, ink.rim);
}

// Draw the ring: the colour is the loss if the scanning point were there; the outer rim marks where
// it is active.
function ring(
  ctx: Context,
  c: number,
  r: number,
  answer: SphereAnswer,
  scene: Scene,
  theme: Theme,
  ink: Ink,
) {
  const { active: bits } = answer,
    shade = answer.ring as Uint8Array,
    n = shade.length,
    step = (2 * Math.PI) / n;
  const arc = (from: number, end: number, radius: number, width: number, colour: string) => {
    ctx.lineWidth = width;
    ctx.strokeStyle = colour;
    ctx.beginPath();
    ctx.arc(c, c, radius, -from * step, -end * step, true);
    ctx.stroke();
  };
  for (let i = 0; i < n; i++)
    arc(i - 0.5, i + 1.1, r, 22, `rgb(${rampColour(shade[i] / 255, theme)})`);
  if (scene.region) {
    const active = (i: number) => Boolean(bits[(i % n) >> 3] & (128 >> ((i % n) & 7)));
    const runs = [...Array(n).keys()].filter((i) => active(i) !== active(i + n - 1));
    for (const from of runs.length ? runs : [0]) {
      let end = from + 1;
      while (end < from + n && active(end) === active(from)) end++;
      if (active(from)) arc(from - 0.5, end - 0.5, r + 13, 3, ink.outer);
      else {
        arc(from - 0.5, end - 0.5, r, 22, ink.veil);
        for (let i = from; i < end; i += 6) hatch(ctx, c, r, i * step, ink);
      }
    }
  }
  for (const radius of [r - 11, r + 11]) arc(0, n, radius, 1, ink.faint);
}

function hatch(ctx: Context, c: number, r: number, angle: number, ink: Ink) {
  ctx.strokeStyle = ink.hatch;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(c + (r - 11) * Math.cos(angle), c - (r - 11) * Math.sin(angle));
  ctx.lineTo(c + (r + 11) * Math.cos(angle + 0.08), c - (r + 11) * Math.sin(angle + 0.08));
  ctx.stroke();
}

// Draw the tangential force on the scanning point around the ring.
function whirl(ctx: Context, c: number, r: number, values: Int8Array, ink: Ink) {
  const n = values.length,
    path = new Path2D(),
    longest = ((2 * Math.PI) / n) * 0.95;
  for (let i = 0; i < n; i++) {
    const push = values[i] / 127,
      middle = (i * 2 * Math.PI) / n,
      half = (push * longest) / 2;
    if (Math.abs(half) * r < 0.8) continue;
    const at: (angle: number) => [number, number] = (angle) => [
        c + r * Math.cos(angle),
        c - r * Math.sin(angle),
      ],
      [x1, y1] = at(middle + half);
    path.moveTo(...at(middle - half));
    path.lineTo(x1, y1);
    const heading =
        Math.atan2(-Math.cos(middle + half), -Math.sin(middle + half)) + (push < 0 ? Math.PI : 0),
      length = Math.min(6, 2.5 + (Math.abs(half) * r) / 2.5);
    for (const bend of [2.6, -2.6]) {
      path.moveTo(x1, y1);
      path.lineTo(x1 + length * Math.cos(heading + bend), y1 + length * Math.sin(heading + bend));
    }
  }
  ctx.strokeStyle = ink.arrow;
  ctx.lineWidth = 1.5;
  ctx.stroke(path);
}

const reach = (size: number, magnitude: number) =>
  size * (0.03 + 0.17 * (1 - Math.exp(-magnitude / 1.6)));

function force(
  ctx: Context,
  size: number,
  scene: Scene,
  name: Point,
  i: number,
  answer: SphereAnswer,
  ink: Ink,
  labels: Label[],
) {
  const angle = scene[name][0] * RAD,
    [x, y] = onCircle(size, scene[name][0]),
    outward = answer.radial[i];
  if (scene.radial && Math.abs(outward) > 1e-9) {
    const l = Math.sign(outward) * reach(size, Math.abs(outward)),
      ux = Math.cos(angle),
      uy = -Math.sin(angle);
    ctx.strokeStyle = ctx.fillStyle = ink.faint;
    ctx.lineWidth = 2.6;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(x + l * ux, y + l * uy);
    ctx.stroke();
    ctx.setLineDash([]);
    head(ctx, x + l * ux, y + l * uy, Math.sign(l) * ux, Math.sign(l) * uy, 5);
    const past = l + Math.sign(l) * 15;
    labels.push([Math.abs(outward).toPrecision(3), x + past * ux, y + past * uy, ink.text]);
  }
  const [fx, fy] = answer.tangential[i],
    magnitude = Math.hypot(fx, fy);
  if (!(magnitude > 1e-9)) return;
  const ux = fx / magnitude,
    uy = -fy / magnitude,
    l = reach(size, magnitude) + 8,
    tx = x + l * ux,
    ty = y + l * uy;
  ctx.lineCap = "round";
  for (const [colour, width] of [
    [ink.rim, 7],
    [ink.force, 4],
  ] as const) {
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(tx - ux * 9, ty - uy * 9);
    ctx.stroke();
    head(ctx, tx, ty, ux, uy, colour === ink.rim ? 9 : 7);
  }
  ctx.lineCap = "butt";
  labels.push([magnitude.toPrecision(3), tx + ux * 14, ty + uy * 14, ink.forceText]);
}

function head(ctx: Context, x: number, y: number, ux: number, uy: number, r: number) {
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x - ux * 2 * r - uy * r, y - uy * 2 * r + ux * r);
  ctx.lineTo(x - ux * 2 * r + uy * r, y - uy * 2 * r - ux * r);
  ctx.fill();
}
