// Maps of 10 x 10 cells and the triangle of features; all values come from Python.
import type { To, TransportAnswer } from "./types.ts";
import type { Context, Ink, Place, Theme } from "../../kit/types.ts";
import { drawing } from "../../kit/dom.ts";
import { INK, halo, rampColour, rgb, strokeOutlined } from "../../kit/colours.ts";

export const SIDE = 10,
  STEPS = 160,
  HEIGHT = Math.sqrt(3) / 2;
// The background is pale, so that painted cells stand out.
const corners = ({ negative, positive, kept }: Ink) => ({
  red: rgb(negative),
  blue: rgb(positive),
  green: rgb(kept),
});
const CORNERS = { light: corners(INK.light), dark: corners(INK.dark) };

export const split = (code: number) => [Math.floor(code / (STEPS + 1)), code % (STEPS + 1)];
export const join = (red: number, blue: number) => red * (STEPS + 1) + blue;

export function colourOf(code: number, theme: Theme) {
  const [red, blue] = split(code),
    green = STEPS - red - blue,
    c = CORNERS[theme];
  return `rgb(${[0, 1, 2].map((k) => Math.round((red * c.red[k] + blue * c.blue[k] + green * c.green[k]) / STEPS))})`;
}

// Return the position of a code in Python's `plane`: red (0, 0), blue (1, 0), green (1/2, HEIGHT).
export function planeOf(code: number) {
  const [red, blue] = split(code),
    green = STEPS - red - blue;
  return [(blue + green / 2) / STEPS, (HEIGHT * green) / STEPS];
}

// Return the code nearest to a place of the plane, within the triangle.
export function codeAt([x, y]: number[]) {
  const green = Math.min(Math.max(y / HEIGHT, 0), 1),
    blue = Math.min(Math.max(x - green / 2, 0), 1 - green);
  const steps = Math.round(STEPS * blue),
    kept = Math.round(STEPS * green);
  return join(Math.max(STEPS - steps - kept, 0), Math.min(steps, STEPS - kept));
}

// at: cell under the pointer
export function cells(
  ctx: Context,
  size: number,
  colour: (j: number) => string,
  ink: Ink,
  { mark = null, cursor = false }: { mark?: number | null; cursor?: boolean },
) {
  const step = size / SIDE,
    scale = ctx.getTransform().a,
    snap = (v: number) => Math.round(v * scale) / scale;
  ctx.clearRect(0, 0, size, size);
  for (let j = 0; j < SIDE * SIDE; j++) {
    const x = snap((j % SIDE) * step),
      y = snap(Math.floor(j / SIDE) * step);
    ctx.fillStyle = colour(j);
    ctx.fillRect(
      x,
      y,
      snap(((j % SIDE) + 1) * step) - x,
      snap((Math.floor(j / SIDE) + 1) * step) - y,
    );
  }
  ctx.strokeStyle = ink.grid;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let k = 1; k < SIDE; k++) {
    ctx.moveTo(k * step, 0);
    ctx.lineTo(k * step, size);
    ctx.moveTo(0, k * step);
    ctx.lineTo(size, k * step);
  }
  ctx.stroke();
  if (mark !== null) ring(ctx, mark, step, ink, cursor);
}

function ring(ctx: Context, j: number, step: number, ink: Ink, thick: boolean | undefined) {
  const x = (j % SIDE) * step,
    y = Math.floor(j / SIDE) * step;
  for (const [colour, width, inset] of [
    [ink.rim, thick ? 4 : 3, 1.5],
    [ink.text, thick ? 2 : 1.3, 1.5],
  ] as const) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.strokeRect(x + inset, y + inset, step - 2 * inset, step - 2 * inset);
  }
}

// Ramp of 256 colours: as CSS strings for cells, as bytes for the triangle.
const ramps: Partial<Record<Theme, { words: string[]; bytes: number[] }>> = {};
function ramp(theme: Theme) {
  const known = ramps[theme];
  if (known) return known;
  const steps = Array.from({ length: 256 }, (_, k) => rampColour(k / 255, theme));
  const made = {
    words: steps.map((colour) => `rgb(${colour})`),
    bytes: steps.map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r),
  };
  ramps[theme] = made;
  return made;
}
const level = (t: number) => Math.min(Math.max(Math.round(255 * t), 0), 255);
export const shade = (values: ArrayLike<number>, top: number, theme: Theme) => (j: number) =>
  ramp(theme).words[level(values[j] / top)];

// Return the layout of the triangle on a canvas of width w and height h: `to` maps the plane to
// pixels.
export function frameOf(w: number, h: number) {
  const side = Math.min(w - 44, (h - 58) / HEIGHT),
    left = (w - side) / 2,
    base = h - 30;
  return { side, left, base, to: (([x, y]) => [left + side * x, base - side * y]) as To };
}

let tile: OffscreenCanvas | undefined;
export function triangle(
  ctx: Context,
  w: number,
  h: number,
  { answer, pixels, mark }: { answer: TransportAnswer; pixels: number[]; mark: number | null },
  theme: Theme,
) {
  const ink = INK[theme],
    { side, to } = frameOf(w, h),
    path = new Path2D(),
    [rows, columns] = answer.shapes.field;
  (
    [
      [0, 0],
      [1, 0],
      [0.5, HEIGHT],
    ] as const
  )
    .map((place) => to(place))
    .forEach(([x, y], i) => (i ? path.lineTo(x, y) : path.moveTo(x, y)));
  path.closePath();
  ctx.clearRect(0, 0, w, h);
  ctx.save();
  ctx.clip(path);
  tile ??= new OffscreenCanvas(columns, rows);
  const pen = drawing(tile),
    image = pen.createImageData(columns, rows);
  const pixels32 = new Int32Array(image.data.buffer),
    { bytes } = ramp(theme);
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < columns; c++)
      pixels32[r * columns + c] =
        bytes[level((answer.field[(rows - 1 - r) * columns + c] / 255) * 0.62)];
  pen.putImageData(image, 0, 0);
  const [x0, y0] = to([0, HEIGHT]),
    [x1, y1] = to([1, 0]),
    dx = (x1 - x0) / (columns - 1),
    dy = (y1 - y0) / (rows - 1);
  ctx.imageSmoothingEnabled = true;
  ctx.drawImage(tile, x0 - dx / 2, y0 - dy / 2, columns * dx, rows * dy);
  outlines(ctx, answer, to, ink);
  ctx.setLineDash([5, 4]);
  ctx.strokeStyle = ink.text;
  ctx.lineWidth = 1.2;
  for (const code of answer.state.prototypes) {
    ctx.beginPath();
    ctx.arc(...to(planeOf(code)), answer.threshold * side, 0, 7);
    ctx.stroke();
  }
  ctx.restore();
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  ctx.stroke(path);
  ctx.font = "11.5px system-ui, sans-serif";
  ctx.textAlign = "center";
  for (const [name, at, dy2] of [
    ["red", [0, 0], 25],
    ["blue", [1, 0], 25],
    ["green, background", [0.5, HEIGHT], -15],
  ] as const) {
    const [x, y] = to(at);
    halo(ctx, name, x, y + dy2, ink.text, ink.page);
  }
  dots(ctx, pixels, to, ink, theme);
  drawPooled(ctx, answer.pooled, to, ink);
  if (mark !== null && mark !== undefined)
    circle(ctx, to(planeOf(pixels[mark])), 8, null, ink.text, 1.6);
}

// Draw the numbered prototypes and the brush.
export function pins(
  ctx: Context,
  to: To,
  prototypes: number[],
  brush: number,
  ink: Ink,
  theme: Theme,
) {
  ctx.font = "700 11.5px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  const [bx, by] = to(planeOf(brush));
  ctx.fillStyle = colourOf(brush, theme);
  strokeOutlined(
    ctx,
    [
      [ink.page, 5],
      [INK[theme].accent, 2],
    ],
    () => ctx.rect(bx - 6.5, by - 6.5, 13, 13),
  );
  ctx.fillRect(bx - 5.5, by - 5.5, 11, 11);
  prototypes.forEach((code, i) => {
    const at = to(planeOf(code));
    circle(ctx, at, 10.75, ink.page + "8c", ink.text, 2.5);
    ctx.fillStyle = ink.text;
    ctx.fillText(String(i + 1), at[0], at[1] + 0.5);
  });
  ctx.textBaseline = "alphabetic";
}

function outlines(ctx: Context, answer: TransportAnswer, to: To, ink: Ink) {
  ctx.strokeStyle = ink.faint;
  ctx.lineWidth = 1;
  let at = 0;
  for (const count of answer.cells) {
    ctx.beginPath();
    for (let k = 0; k < count; k++) {
      const [x, y] = to([answer.corners[2 * (at + k)], answer.corners[2 * (at + k) + 1]]);
      if (k) ctx.lineTo(x, y);
      else ctx.moveTo(x, y);
    }
    ctx.closePath();
    ctx.stroke();
    at += count;
  }
}

// Draw equal features once, larger and with their number.
function dots(ctx: Context, pixels: number[], to: To, ink: Ink, theme: Theme) {
  const counts: Map<number, number> = new Map();
  for (const code of pixels) counts.set(code, (counts.get(code) ?? 0) + 1);
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const [code, count] of counts) {
    const at = to(planeOf(code)),
      radius = 3 + 1.1 * Math.sqrt(count - 1);
    circle(ctx, at, radius, colourOf(code, theme), ink.text, 0.9);
    if (count > 9) {
      ctx.font = "600 10.5px system-ui, sans-serif";
      halo(ctx, String(count), at[0], at[1] + 0.5, ink.text, ink.page, 2);
    }
  }
  ctx.textBaseline = "alphabetic";
}

function drawPooled(ctx: Context, places: Place[], to: To, ink: Ink) {
  const shapes: ((x: number, y: number, r: number) => void)[] = [
    (x, y, r) => {
      ctx.moveTo(x, y - r - 1);
      ctx.lineTo(x + r + 1, y);
      ctx.lineTo(x, y + r + 1);
      ctx.lineTo(x - r - 1, y);
    },
    (x, y, r) => ctx.arc(x, y, r, 0, 7),
    (x, y, r) => ctx.rect(x - r, y - r, 2 * r, 2 * r),
  ];
  places.forEach((place, i) => {
    const [x, y] = to(place);
    strokeOutlined(
      ctx,
      [
        [ink.rim, 5],
        [ink.text, 2.2],
      ],
      () => {
        shapes[i](x, y, 5);
        ctx.closePath();
      },
    );
  });
}

function circle(
  ctx: Context,
  [x, y]: number[],
  radius: number,
  fill: string | null,
  stroke: string,
  width: number,
) {
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 7);
  if (fill) {
    ctx.fillStyle = fill;
    ctx.fill();
  }
  ctx.strokeStyle = stroke;
  ctx.lineWidth = width;
  ctx.stroke();
}
