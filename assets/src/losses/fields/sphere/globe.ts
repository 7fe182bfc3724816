// Drawing of the sphere: graticule, boundaries, arrows, great circles, points and their forces.
import type { At, Label, Look, Scene, SphereAnswer, Vector } from "./types.ts";
import type { Context, Ink, Point } from "../../../kit/types.ts";
import { POINTS, halo } from "../../../kit/colours.ts";
import { force } from "./cones.ts";
import { mark, write } from "./marks.ts";
import { along, cross, direction, dot, lookFrom, projector } from "./projection.ts";
import { FILL } from "./surface.ts";

/** Draw everything above the surface. */
export function paintGlobe(
  ctx: Context,
  size: number,
  scene: Scene,
  answer: SphereAnswer | null,
  ink: Ink,
): void {
  const view = lookFrom(scene.eye),
    at = projector(view, size);
  graticule(ctx, size, at, ink);
  if (answer) {
    if (scene.region) boundaries(ctx, answer, at, ink);
    if (scene.arrows) whiskers(ctx, answer, view, at, ink);
  }
  places(ctx, at, ink);
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
}

// Name longitudes and poles, on top of the arrows.
function places(ctx: Context, at: At, ink: Ink) {
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
function whiskers(ctx: Context, { nodes, arrows }: SphereAnswer, view: Look, at: At, ink: Ink) {
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
