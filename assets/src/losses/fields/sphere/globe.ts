// Orthographic drawing on the sphere: graticule, boundaries, arrows, great circles, cones, points.
// Directions are unit vectors in Python's axes; a view has the three directions right, up and eye
// (towards the viewer).
import type { At, Label, Scene, SphereAnswer, Vector, View } from "./types.ts";
import type { Context, Ink, Place, Point, Theme } from "../../../kit/types.ts";
import { INK, POINTS, halo } from "../../../kit/colours.ts";
import { mark, write } from "./marks.ts";
import { FILL } from "./surface.ts";

const RAD = Math.PI / 180;

export const direction = ([lon, lat]: Vector) => [
  Math.cos(lat * RAD) * Math.cos(lon * RAD),
  Math.cos(lat * RAD) * Math.sin(lon * RAD),
  Math.sin(lat * RAD),
];
export const place = ([x, y, z]: Vector) => [
  Math.atan2(y, x) / RAD,
  Math.atan2(z, Math.hypot(x, y)) / RAD,
];
const dot = (a: Vector, b: Vector) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const along = (a: Vector, s: number, b: Vector) => [
  a[0] + s * b[0],
  a[1] + s * b[1],
  a[2] + s * b[2],
];
const cross = (a: Vector, b: Vector) => [
  a[1] * b[2] - a[2] * b[1],
  a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0],
];

export function viewFrom([lon, lat]: Place) {
  const s = Math.sin(lon * RAD),
    c = Math.cos(lon * RAD),
    t = Math.sin(lat * RAD),
    k = Math.cos(lat * RAD);
  return { right: [-s, c, 0], up: [-t * c, -t * s, k], eye: [k * c, k * s, t] };
}

// Return pixels and depth (towards the viewer, in radii) of a direction.
export function projector(view: View, size: number) {
  const r = FILL * size,
    c = size / 2;
  const at: At = (v) => [c + r * dot(v, view.right), c - r * dot(v, view.up), dot(v, view.eye)];
  return at;
}

// Return the direction under a pixel. Beyond the rim it continues around the back.
export function grasp(view: View, size: number, x: number, y: number, front = true) {
  const r = FILL * size;
  let u = (x - size / 2) / r,
    v = (size / 2 - y) / r,
    length = Math.hypot(u, v),
    side = front ? 1 : -1;
  if (length > 1) {
    const back = Math.max(2 - length, 0.05) / length;
    [u, v, side] = [u * back, v * back, -side];
    length = Math.hypot(u, v);
  }
  const depth = side * Math.sqrt(Math.max(0, 1 - length * length));
  return [0, 1, 2].map((i) => u * view.right[i] + v * view.up[i] + depth * view.eye[i]);
}

// Draw everything above the surface.
export function paintGlobe(
  ctx: Context,
  size: number,
  scene: Scene,
  answer: SphereAnswer | null | undefined,
  theme: Theme,
) {
  const ink = INK[theme],
    view = viewFrom(scene.eye),
    at = projector(view, size);
  ctx.clearRect(0, 0, size, size);
  graticule(ctx, size, at, ink);
  if (answer) {
    if (scene.region) boundaries(ctx, answer, at, ink);
    if (scene.arrows) whiskers(ctx, answer, view, at, ink);
  }
  const dirs = {
    anchor: direction(scene.anchor),
    positive: direction(scene.positive),
    negative: direction(scene.negative),
  };
  sides(ctx, dirs, at, ink);
  const depth = (name: Point) => dot(dirs[name], view.eye),
    order = [...POINTS].sort((x, y) => depth(x) - depth(y));
  const labels: Label[] = [];
  for (const name of order) {
    if (answer?.tangential && scene.on === answer.on)
      force(ctx, name, dirs[name], answer, scene, view, at, ink, labels);
    mark(ctx, name, at(dirs[name]), name === scene.probe, ink);
  }
  write(ctx, labels, size, ink);
}

// Draw a line on the sphere; hidden parts are omitted, or drawn in the style `back`.
function trace(ctx: Context, at: At, points: Vector[], back?: (ctx: Context) => void) {
  for (const front of [false, true]) {
    if (!front && !back) continue;
    ctx.save();
    if (!front) back?.(ctx);
    ctx.beginPath();
    let open = false;
    for (const v of points) {
      const [x, y, z] = at(v);
      if (z >= 0 !== front) {
        open = false;
        continue;
      }
      if (open) ctx.lineTo(x, y);
      else ctx.moveTo(x, y);
      open = true;
    }
    ctx.stroke();
    ctx.restore();
  }
}

const turn = Array.from({ length: 91 }, (_, i) => i * 4 - 180);
const PARALLELS = [-60, -30, 0, 30, 60].map((lat) => turn.map((lon) => direction([lon, lat])));
const MERIDIANS = [0, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 330].map((lon) =>
  Array.from({ length: 31 }, (_, i) => direction([lon, -75 + i * 5])),
);

function graticule(ctx: Context, size: number, at: At, ink: Ink) {
  const path = new Path2D();
  for (const line of [...PARALLELS, ...MERIDIANS]) {
    let open = false;
    for (const v of line) {
      const [x, y, z] = at(v);
      if (z < 0) {
        open = false;
        continue;
      }
      if (open) path.lineTo(x, y);
      else path.moveTo(x, y);
      open = true;
    }
  }
  ctx.strokeStyle = ink.faint;
  ctx.globalAlpha = 0.45;
  ctx.lineWidth = 0.7;
  ctx.stroke(path);
  ctx.globalAlpha = 1;
  // Darker rim for a round appearance; the middle keeps the colours of the scale.
  const c = size / 2,
    r = FILL * size,
    shadow = ctx.createRadialGradient(c, c, 0.84 * r, c, c, r);
  shadow.addColorStop(0, "rgba(0,0,0,0)");
  shadow.addColorStop(1, "rgba(0,0,0,.28)");
  ctx.beginPath();
  ctx.arc(c, c, r, 0, 2 * Math.PI);
  ctx.fillStyle = shadow;
  ctx.fill();
  ctx.lineWidth = 1.6;
  ctx.stroke();
  ctx.font = "11px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const [text, v] of [
    ["0°", [0, 0]],
    ["90°", [90, 0]],
    ["180°", [180, 0]],
    ["−90°", [-90, 0]],
    ["+90° lat", [0, 90]],
    ["−90° lat", [0, -90]],
  ] as const) {
    const [x, y, z] = at(direction(v));
    if (z > 0.25) {
      ctx.globalAlpha = 0.8;
      halo(ctx, text, x, y + 10, ink.text, ink.rim);
      ctx.globalAlpha = 1;
    }
  }
}

function boundaries(ctx: Context, answer: SphereAnswer, at: At, ink: Ink) {
  let from = 0;
  const next = (count: number) => {
    const line: Vector[] = [];
    for (let i = 0; i < count; i++, from++)
      line.push([0, 1, 2].map((k) => answer.corners[3 * from + k] / 32767));
    return line;
  };
  const draw = (line: Vector[], dash: number[]) => {
    for (const [colour, width, dashes] of [
      [ink.glow, 4.5, []],
      [ink.outer, 1.9, dash],
    ] as const) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = width;
      ctx.setLineDash(dashes);
      trace(ctx, at, line);
    }
  };
  for (const count of answer.outer) draw(next(count), []);
  for (const count of answer.inner) draw(next(count), [6, 4]);
  ctx.setLineDash([]);
}

// Draw the tangential force on the scanning point at evenly spaced nodes.
function whiskers(ctx: Context, { nodes, arrows }: SphereAnswer, view: View, at: At, ink: Ink) {
  const path = new Path2D(),
    longest = 0.18 / 127;
  for (let i = 0; i < nodes.length; i += 3) {
    const v = [nodes[i] / 32767, nodes[i + 1] / 32767, nodes[i + 2] / 32767];
    if (dot(v, view.eye) < 0.06) continue;
    const f = [arrows[i] * longest, arrows[i + 1] * longest, arrows[i + 2] * longest];
    const [x0, y0] = at(along(v, -0.5, f)),
      [x1, y1] = at(along(v, 0.5, f)),
      length = Math.hypot(x1 - x0, y1 - y0);
    if (length < 1.5) continue;
    const angle = Math.atan2(y1 - y0, x1 - x0),
      head = Math.min(5, 1.2 + length / 4);
    path.moveTo(x0, y0);
    path.lineTo(x1, y1);
    for (const bend of [2.6, -2.6]) {
      path.moveTo(x1, y1);
      path.lineTo(x1 + head * Math.cos(angle + bend), y1 + head * Math.sin(angle + bend));
    }
  }
  for (const [colour, width] of [
    [ink.glow, 2.8],
    [ink.arrow, 1.2],
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.stroke(path);
  }
}

// Draw the edges of the triplet as great circles.
function sides(ctx: Context, dirs: Record<Point, Vector>, at: At, ink: Ink) {
  ctx.lineWidth = 1.8;
  for (const [from, to, colour, dash] of [
    ["anchor", "positive", ink.positive, []],
    ["anchor", "negative", ink.negative, [5, 4]],
    ["positive", "negative", ink.negative, [5, 4]],
  ] as const) {
    const a = dirs[from],
      b = dirs[to],
      angle = Math.atan2(Math.hypot(...cross(a, b)), dot(a, b)),
      s = Math.sin(angle);
    if (s < 1e-6) continue; // equal or opposite points: no unique great circle
    const line = Array.from({ length: 41 }, (_, i) => {
      const t = i / 40;
      return along(
        a.map((x) => (x * Math.sin((1 - t) * angle)) / s),
        Math.sin(t * angle) / s,
        b,
      );
    });
    ctx.strokeStyle = colour;
    ctx.setLineDash(dash);
    trace(ctx, at, line, (c) => {
      c.globalAlpha = 0.28;
    });
  }
  ctx.setLineDash([]);
}

// Return the length of a force on screen, in radii: proportional if small, never longer than the
// sphere's radius.
const reach = (magnitude: number) => 0.1 + 0.75 * (1 - Math.exp(-magnitude / 1.6));

function force(
  ctx: Context,
  name: Point,
  v: Vector,
  answer: SphereAnswer,
  scene: Scene,
  view: View,
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
    if (length > 26 && !behind) {
      ctx.beginPath();
      ctx.arc(x1, y1, 3, 0, 7);
      ctx.fillStyle = ink.faint;
      ctx.fill();
      labels.push([
        Math.abs(outward).toPrecision(2),
        x1 - (14 * (y1 - y0)) / length,
        y1 + (14 * (x1 - x0)) / length,
        ink.text,
      ]);
    }
  }
  ctx.restore();
}

// Draw an arrow with a shaft and a shaded cone in 3-D, seen along the eye.
function cone(ctx: Context, from: Vector, t: Vector, length: number, view: View, at: At, ink: Ink) {
  const head = Math.min(0.15, length * 0.55),
    radius = head * 0.36,
    tip = along(from, length, t),
    neck = along(from, length - head, t);
  const [x0, y0] = at(from),
    [x1, y1] = at(neck);
  ctx.lineCap = "round";
  for (const [colour, width] of [
    [ink.rim, 7],
    [ink.force, 4.2],
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.lineTo(x1, y1);
    ctx.stroke();
  }
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
