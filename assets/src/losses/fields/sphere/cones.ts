// Forces on the three points of the globe.
import type { At, Label, Look, Scene, SphereAnswer, Vector } from "./types.ts";
import type { Context, Ink, Point } from "../../../kit/types.ts";
import { POINTS, lineOutlined } from "../../../kit/colours.ts";
import { along, cross, dot } from "./projection.ts";

const DISC = 13; // px, radius of the mark of a point with its rim

// Return the length of a force on screen, in radii: proportional if small, never longer than the
// sphere's radius.
const reach = (magnitude: number) => 0.1 + 0.75 * (1 - Math.exp(-magnitude / 1.6));

/** Draw the force on a point: its tangential part as a cone, its radial part as a dotted line. */
export function force(
  ctx: Context,
  name: Point,
  v: Vector,
  answer: SphereAnswer,
  scene: Scene,
  view: Look,
  at: At,
  ink: Ink,
  labels: Label[],
) {
  const i = POINTS.indexOf(name),
    f = answer.tangential[i],
    magnitude = Math.hypot(...f),
    behind = dot(v, view.eye) < 0;
  ctx.save();
  if (behind) ctx.globalAlpha = 0.35;
  if (magnitude > 1e-9) {
    const t = f.map((x) => x / magnitude),
      length = reach(magnitude),
      tip = along(v, length, t);
    cone(ctx, v, t, length, view, at, ink);
    const [x, y] = at(along(tip, 0.09, t));
    if (!behind) labels.push([magnitude.toPrecision(3), x, y, ink.forceText]);
  }
  const outward = answer.radial[i];
  if (scene.radial && Math.abs(outward) > 1e-9) {
    const [x0, y0] = at(v),
      [x1, y1] = at(along(v, Math.sign(outward) * reach(Math.abs(outward)), v)),
      length = Math.hypot(x1 - x0, y1 - y0);
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.lineTo(x1, y1);
    for (const [colour, width] of [
      [ink.rim, 4.5],
      [ink.faint, 2.6],
    ] as const) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = width;
      ctx.stroke();
    }
    ctx.setLineDash([]);
    if (length > DISC && !behind) {
      ctx.beginPath();
      ctx.arc(x1, y1, 3, 0, 7);
      ctx.fillStyle = ink.faint;
      ctx.fill();
      const [x2, y2] = at(along(v, 1, f)),
        text = Math.abs(outward).toPrecision(3),
        [ux, uy] = beyond([(x1 - x0) / length, (y1 - y0) / length], [x2 - x0, y2 - y0]),
        half = 3.5 * text.length; // of its width
      labels.push([text, x1 + ux * (6 + half * Math.abs(ux)), y1 + uy * 14, ink.text]);
    }
  }
  ctx.restore();
}

// Return the direction from the end of a radial part to its number: along the part, or to its other
// side where the tangential part has about the same direction.
function beyond([ux, uy]: number[], [tx, ty]: number[]) {
  if (ux * tx + uy * ty <= 0.8 * Math.hypot(tx, ty)) return [ux, uy];
  return ux * ty < uy * tx ? [-uy, ux] : [uy, -ux];
}

// Draw an arrow with a shaft and a shaded cone in 3-D, seen along the eye.
function cone(ctx: Context, from: Vector, t: Vector, length: number, view: Look, at: At, ink: Ink) {
  const head = Math.min(0.15, length * 0.55),
    radius = head * 0.36,
    tip = along(from, length, t),
    neck = along(from, length - head, t);
  ctx.lineCap = "round";
  lineOutlined(ctx, at(from), at(neck), [
    [ink.rim, 7],
    [ink.force, 4.2],
  ]);
  ctx.lineCap = "butt";
  const side = Math.abs(t[2]) < 0.9 ? cross(t, [0, 0, 1]) : cross(t, [1, 0, 0]),
    norm = Math.hypot(...side),
    e = side.map((x) => x / norm),
    g = cross(t, e);
  const light = along(along(view.eye, 0.6, view.up), -0.5, view.right),
    bright = Math.hypot(...light),
    steps = 20;
  const rim = (k: number) => {
    const c = Math.cos((2 * Math.PI * k) / steps),
      s = Math.sin((2 * Math.PI * k) / steps);
    return e.map((x, i) => c * x + s * g[i]);
  };
  type Corner = [number, number, number];
  const facets: [depth: number, top: Corner, left: Corner, right: Corner, shine: number][] = [];
  for (let k = 0; k < steps; k++) {
    const out = rim(k + 0.5),
      normal = along(
        out.map((x) => x * head),
        radius,
        t,
      ),
      n = Math.hypot(...normal);
    facets.push([
      dot(along(neck, radius, out), view.eye),
      at(tip),
      at(along(neck, radius, rim(k - 0.04))),
      at(along(neck, radius, rim(k + 1.04))),
      dot(normal, light) / (n * bright),
    ]);
  }
  const [r, gr, b] = (ink.force.match(/\w\w/g) ?? []).map((x) => parseInt(x, 16));
  const paint = (path: Path2D, shine: number) => {
    const m = 0.62 + 0.5 * Math.max(0, shine);
    ctx.fillStyle = `rgb(${[r, gr, b].map((x) => Math.min(255, Math.round(x * m)))})`;
    ctx.fill(path);
  };
  const disc = new Path2D();
  for (let k = 0; k < steps; k++) {
    const [x, y] = at(along(neck, radius, rim(k)));
    if (k) disc.lineTo(x, y);
    else disc.moveTo(x, y);
  }
  disc.closePath();
  const outline = new Path2D(disc),
    [tx, ty] = at(tip);
  facets.sort((p, q) => p[0] - q[0]);
  for (const [, , p, q] of facets) {
    outline.moveTo(tx, ty);
    outline.lineTo(p[0], p[1]);
    outline.lineTo(q[0], q[1]);
    outline.closePath();
  }
  ctx.strokeStyle = ink.rim;
  ctx.lineWidth = 2.5;
  ctx.lineJoin = "round";
  ctx.stroke(outline);
  const away = dot(t, view.eye) < 0; // the base faces the viewer
  if (!away) paint(disc, -1);
  for (const [, top, p, q, shine] of facets) {
    const path = new Path2D();
    path.moveTo(top[0], top[1]);
    path.lineTo(p[0], p[1]);
    path.lineTo(q[0], q[1]);
    path.closePath();
    paint(path, shine);
  }
  if (away) paint(disc, 0.1);
}
