// Layers over the field: arrows, circles, lines and points of the triplet.
import type { At, Box, Discs, Mining, Painted, Scene } from "./types.ts";
import type { Context, Ink, Point } from "../types.ts";
import { LETTER, POINTS, halo, lineOutlined } from "../colours.ts";

// Return the colour of an arrow, dark on light fields and light on dark ones, so that it is legible
// without an outline.
export function arrows(ctx: Context, field: Painted, { left, top, side }: Box, ink: Ink) {
  const { shade, n, signed } = field,
    values = field.arrows as Int8Array,
    cell = side / 20,
    longest = cell * 0.86,
    paths = [new Path2D(), new Path2D()];
  const deep = (row: number, col: number) => {
    if (!shade) return 0;
    const value =
      shade[Math.floor(((row + 0.5) * n) / 20) * n + Math.floor(((col + 0.5) * n) / 20)];
    return Number(signed ? Math.abs(value - 128) > 80 : value > 128);
  };
  for (let row = 0; row < 20; row++) {
    for (let col = 0; col < 20; col++) {
      const i = 2 * (row * 20 + col),
        fx = values[i] / 127,
        fy = -values[i + 1] / 127,
        length = Math.hypot(fx, fy) * longest;
      if (length < 1) continue;
      const x = left + (col + 0.5) * cell,
        y = top + side - (row + 0.5) * cell,
        path = paths[deep(row, col)];
      const angle = Math.atan2(fy, fx),
        hx = (Math.cos(angle) * length) / 2,
        hy = (Math.sin(angle) * length) / 2;
      path.moveTo(x - hx, y - hy);
      path.lineTo(x + hx, y + hy);
      barbs(path, x + hx, y + hy, angle, Math.min(5, 1.5 + length / 4));
    }
  }
  ctx.lineWidth = 1.3;
  paths.forEach((path, i) => {
    ctx.strokeStyle = i ? ink.rim : ink.arrow;
    ctx.stroke(path);
  });
}

export function streams(ctx: Context, field: Painted, { left, top, side }: Box, ink: Ink) {
  const [lines, corners] = field.shapes.streams,
    ends = field.streams as Uint16Array,
    path = new Path2D(),
    tip = [0, 0],
    before = [0, 0];
  for (let line = 0; line < lines; line++) {
    for (let i = 0; i < corners; i++) {
      const k = 2 * (line * corners + i),
        x = left + (ends[k] / 65535) * side,
        y = top + side - (ends[k + 1] / 65535) * side;
      if (i) path.lineTo(x, y);
      else path.moveTo(x, y);
      if (i === ((corners - 1) >> 1) + 1) [tip[0], tip[1]] = [x, y];
      if (i === (corners - 1) >> 1) [before[0], before[1]] = [x, y];
    }
    if (Math.hypot(tip[0] - before[0], tip[1] - before[1]) > 0.5)
      barbs(path, tip[0], tip[1], Math.atan2(tip[1] - before[1], tip[0] - before[0]), 4.5);
  }
  glow(ctx, path, ink);
}

function barbs(path: Path2D, x: number, y: number, angle: number, length: number) {
  for (const turn of [2.6, -2.6]) {
    path.moveTo(x, y);
    path.lineTo(x + length * Math.cos(angle + turn), y + length * Math.sin(angle + turn));
  }
}

function glow(ctx: Context, path: Path2D, ink: Ink) {
  for (const [colour, width] of [
    [ink.glow, 3],
    [ink.arrow, 1.3],
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.stroke(path);
  }
}

export function circle(ctx: Context, [x, y]: number[], radius: number) {
  ctx.beginPath();
  ctx.arc(x, y, Math.max(radius, 0), 0, 2 * Math.PI);
  ctx.stroke();
}

// Draw the ranking discs about anchor and positive, and the enclosing ellipse with these foci
// (Appendix B).
export function discs(
  ctx: Context,
  scene: Scene,
  { radius, axes }: Discs,
  at: At,
  size: number,
  ink: Ink,
) {
  const k = size / (2 * scene.view[2]),
    a = at(scene.anchor),
    p = at(scene.positive);
  ctx.strokeStyle = ink.disc;
  ctx.lineWidth = 1.75;
  ctx.setLineDash([2, 4]);
  circle(ctx, a, radius * k);
  circle(ctx, p, radius * k);
  ctx.setLineDash([9, 3, 2, 3]);
  ctx.beginPath();
  ctx.ellipse(
    (a[0] + p[0]) / 2,
    (a[1] + p[1]) / 2,
    axes[0] * k,
    axes[1] * k,
    Math.atan2(p[1] - a[1], p[0] - a[0]),
    0,
    2 * Math.PI,
  );
  ctx.stroke();
  ctx.setLineDash([]);
}

// Draw the circle that separates hard from semi-hard (Fig. 2.5); easy starts where the loss
// vanishes.
export function mining(
  ctx: Context,
  scene: Scene,
  { centre, radius, labels }: Mining,
  at: At,
  size: number,
  ink: Ink,
) {
  ctx.font = "600 12px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  if (centre) {
    ctx.strokeStyle = ink.positive;
    ctx.lineWidth = 2;
    ctx.setLineDash([10, 4]);
    circle(ctx, at(scene[centre]), (radius * size) / (2 * scene.view[2]));
    ctx.setLineDash([]);
  }
  for (const [text, place] of labels) {
    const [x, y] = at(place);
    if (x > 30 && x < size - 30 && y > 12 && y < size - 12)
      halo(ctx, text, x, y, ink.text, ink.rim, 4);
  }
}

export function cutLine(ctx: Context, scene: Scene, at: At, ink: Ink) {
  const [x0, y0, x1, y1] = scene.line,
    from = at([x0, y0]),
    to = at([x1, y1]);
  lineOutlined(ctx, from, to, [
    [ink.rim, 4],
    [ink.disc, 2],
  ]);
  for (const [x, y] of [from, to]) {
    ctx.fillStyle = ink.disc;
    ctx.strokeStyle = ink.rim;
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.moveTo(x, y - 8);
    ctx.lineTo(x + 8, y);
    ctx.lineTo(x, y + 8);
    ctx.lineTo(x - 8, y);
    ctx.closePath();
    ctx.fill();
    ctx.stroke();
  }
}

export function triangle(ctx: Context, scene: Pick<Scene, Point>, at: At, ink: Ink) {
  ctx.lineWidth = 1.4;
  edges(ctx, (name) => at(scene[name]), ink);
}

// Draw the lines between three points of a canvas; those to the negative are dashed.
export function edges(ctx: Context, at: (name: Point) => [x: number, y: number], ink: Ink) {
  const [a, p, n] = POINTS.map(at);
  for (const [from, to, colour, dash] of [
    [a, p, ink.positive, []],
    [a, n, ink.negative, [4, 4]],
    [p, n, ink.negative, [4, 4]],
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(...from);
    ctx.lineTo(...to);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

// Draw the mark of a point of a triplet: a disc of 10 px, for the negative a square, with its letter.
export function pointMark(ctx: Context, name: Point, [x, y]: readonly number[], ink: Ink) {
  ctx.fillStyle = ink[name];
  ctx.strokeStyle = ink.rim;
  ctx.lineWidth = 2.5;
  ctx.beginPath();
  if (name === "negative") ctx.rect(x - 9, y - 9, 18, 18);
  else ctx.arc(x, y, 10, 0, 2 * Math.PI);
  ctx.fill();
  ctx.stroke();
  ctx.font = "700 12px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillStyle = ink.rim;
  ctx.fillText(LETTER[name], x, y + 0.5);
}

export function points(ctx: Context, scene: Pick<Scene, Point | "probe">, at: At, ink: Ink) {
  for (const name of POINTS) {
    const place = at(scene[name]);
    pointMark(ctx, name, place, ink);
    if (name === scene.probe) {
      ctx.strokeStyle = ink[name];
      ctx.lineWidth = 1.5;
      circle(ctx, place, 15);
    }
  }
}
