// Figure of a counter-example: plane, triplet, and both gradients on each point; all numbers come
// from Python.
import type { Frame } from "../../kit/figure/spec.ts";
import type { Context, Theme } from "../../kit/types.ts";
import type { Gradient, Label, Pixels, Scene, Side, TruthAnswer } from "./types.ts";
import { INK, POINTS, halo } from "../../kit/colours.ts";
import { grid, numbers } from "../../kit/figure/axes.ts";
import { points, triangle } from "../../kit/plane/layers.ts";

const LONGEST = 0.23, // length of the longest of the six arrows, as a share of the frame
  AGREE = 1e-9; // gradients closer than this are drawn as one

// Draw a scene with its answer, if there is one, and the map of the difference (n x n pixels).
export function drawScene(
  ctx: Context,
  { view, ink, theme }: Frame,
  scene: Scene,
  answer: TruthAnswer | undefined,
  map: CanvasImageSource | null | undefined,
) {
  const { width: size, to } = view;
  ctx.fillStyle = ink.page;
  ctx.fillRect(0, 0, size, size);
  if (answer && map) {
    const [x, y, half] = answer.view,
      [left, top] = to([x - half, y + half]),
      side = to([x + half, y])[0] - left;
    ctx.drawImage(map, left, top, side, side);
  }
  grid(ctx, view, ink);
  triangle(ctx, scene, to, ink);
  if (answer) gradients(ctx, scene, answer, to, size, theme);
  points(ctx, scene, to, ink);
  numbers(ctx, view, ink);
}

// Contrast of 4.5 to the page, as fill and as text.
export const colourOf = (side: Side, theme: Theme, letters = false) =>
  INK[theme][`${side === "true" ? "corrected" : "printed"}${letters ? "Text" : ""}`];

// Draw both gradients of each point at one scale. True: solid and wide; printed: dashed on top, so
// that both are visible if they agree.
function gradients(
  ctx: Context,
  scene: Scene,
  answer: TruthAnswer,
  to: (place: number[]) => Pixels,
  size: number,
  theme: Theme,
) {
  const lengths = [...answer.printed, ...answer.true].filter(finite).map((g) => Math.hypot(...g)),
    k = (LONGEST * size) / Math.max(...lengths, 1e-12),
    labels: Label[] = [];
  POINTS.forEach((name, i) => {
    const from = to(scene[name]),
      agree = (answer.apart[i] ?? 1) < AGREE;
    for (const side of ["true", "printed"] as const) {
      const gradient = answer[side][i];
      if (!finite(gradient)) {
        const at: Pixels = [from[0], from[1] + (side === "true" ? 28 : 42)];
        labels.push({ side, at, words: "not finite" });
        continue;
      }
      const length = Math.hypot(...gradient),
        tip: Pixels = [from[0] + gradient[0] * k, from[1] - gradient[1] * k];
      if (length * k < 3) continue;
      arrow(ctx, from, tip, side, theme, agree);
      if (side === "true" || !agree)
        // one number serves two arrows that agree
        labels.push({
          side,
          at: labelPlace(from, tip, agree ? undefined : rival(answer, side, i), size),
          words: length.toPrecision(3),
        });
    }
  });
  write(ctx, labels, size, theme);
}

// Write numbers so that they avoid each other.
function write(ctx: Context, labels: Label[], size: number, theme: Theme) {
  const placed: Pixels[] = [];
  ctx.font = "700 12.5px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  for (const { side, at, words } of labels) {
    const step = at[1] > size / 2 ? -14 : 14;
    while (placed.some(([x, y]) => Math.abs(x - at[0]) < 44 && Math.abs(y - at[1]) < 14))
      at[1] += step;
    placed.push(at);
    halo(ctx, words, ...at, colourOf(side, theme, true), INK[theme].rim, 3.5);
  }
}

const finite = (g: Gradient): g is number[] => g.every((x) => x !== null);

function arrow(
  ctx: Context,
  [x, y]: Pixels,
  [tx, ty]: Pixels,
  side: Side,
  theme: Theme,
  agree: boolean,
) {
  const { rim } = INK[theme],
    colour = colourOf(side, theme),
    isTrue = side === "true",
    length = Math.hypot(tx - x, ty - y),
    ux = (tx - x) / length,
    uy = (ty - y) / length,
    [most, wide] = isTrue ? [20, 10] : [agree ? 11 : 15, agree ? 4.5 : 6],
    head = Math.min(most, length * 0.6);
  const line = (stroke: string, width: number, dash: number[] = []) => {
    ctx.strokeStyle = stroke;
    ctx.lineWidth = width;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(tx - ux * head * 0.7, ty - uy * head * 0.7);
    ctx.stroke();
    ctx.setLineDash([]);
  };
  const tip = (fill: string, border: number) => {
    ctx.fillStyle = fill;
    ctx.strokeStyle = rim;
    ctx.lineWidth = border;
    ctx.beginPath();
    ctx.moveTo(tx, ty);
    ctx.lineTo(tx - ux * head - uy * wide, ty - uy * head + ux * wide);
    ctx.lineTo(tx - ux * head + uy * wide, ty - uy * head - ux * wide);
    ctx.closePath();
    ctx.fill();
    if (border) ctx.stroke();
  };
  if (isTrue) tip(rim, 3);
  if (isTrue || !agree) line(rim, isTrue ? 10.5 : 4.6);
  line(colour, isTrue ? 7.5 : 2.8, isTrue ? [] : [7, 5]);
  tip(colour, isTrue ? 0 : 0.8);
}

// Return the other gradient on a point, if it is finite.
function rival(answer: TruthAnswer, side: Side, i: number) {
  const other = answer[side === "true" ? "printed" : "true"][i];
  return finite(other) ? other : undefined;
}

// Return the place of a number: beyond the tip of its arrow, on the side away from the other arrow.
function labelPlace(
  [x, y]: Pixels,
  [tx, ty]: Pixels,
  other: number[] | undefined,
  size: number,
): Pixels {
  const length = Math.hypot(tx - x, ty - y),
    ux = (tx - x) / length,
    uy = (ty - y) / length,
    inside = (v: number, room: number) => Math.min(Math.max(v, room), size - room),
    turn = other ? Math.sign(ux * other[1] + uy * other[0]) : 0; // > 0: the other is on the left
  return [inside(tx + ux * 22 - turn * uy * 12, 24), inside(ty + uy * 14 + 4 + turn * ux * 12, 16)];
}
