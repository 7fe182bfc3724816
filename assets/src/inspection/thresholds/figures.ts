// Figures of the Thresholds page: distributions of both kinds of pairs, and rates of each class.
import type { Axis } from "../../kit/figure/axes.ts";
import type { Stroke } from "../../kit/chart/pen.ts";
import type { Theme } from "../../kit/types.ts";
import type { Curves, Kind, Rate, Side } from "./types.ts";
import { position, valueAt } from "../../kit/figure/axes.ts";
import { Pen } from "../../kit/chart/pen.ts";
import { bars } from "./curves.ts";

export const PAD = { left: 44, right: 14, top: 20, bottom: 36 };
const KINDS: Kind[] = ["different", "same"],
  LEVELS = [0, 0.01, 0.1, 0.25, 0.5, 1], // marks of a rate
  FULL = 65535; // stored value of a rate of 1

interface Place {
  curves: Curves;
  side: Side;
  theme: Theme;
  width: number;
  height: number;
}
export interface Distributions extends Place {
  densities: Partial<Record<Side, Record<Kind, Float64Array>>>;
}

const similarity = ({ thresholds }: Curves): Axis => ({
  low: thresholds[0],
  high: thresholds[thresholds.length - 1],
  name: "cosine similarity",
});

// Return the functions from thresholds to pixels of a figure and back.
export function scale(curves: Curves, width: number) {
  const axis = similarity(curves),
    length = width - PAD.left - PAD.right;
  return {
    x: position(axis, PAD.left, PAD.left + length),
    t: (x: number) => valueAt(axis, (x - PAD.left) / length),
  };
}

const penOf = (ctx: CanvasRenderingContext2D, place: Place, high: number) =>
  new Pen(
    ctx,
    { ...place, pad: PAD, x: similarity(place.curves), y: { low: 0, high, scale: "sqrt" } },
    place.theme,
  );

const drawThresholds = (pen: Pen) => pen.xAxis(Math.max(3, pen.frame.width / 110), "mark");

const highest = ({ densities }: Distributions) =>
  Math.max(
    ...Object.values(densities)
      .flatMap((each) => Object.values(each))
      .map((shares) => shares.reduce((a, b) => Math.max(a, b), 0)),
  );

// Draw the bars of a distribution as one area: its outline, and its inside if `fill` is above 0.
function area(
  pen: Pen,
  { thresholds, even }: Curves,
  shares: Float64Array,
  colour: string,
  fill: number,
  stroke?: Stroke,
) {
  const { ctx, base } = pen,
    ends = Array.from(bars({ even }), (k) => pen.x(thresholds[k]));
  ctx.beginPath();
  ctx.moveTo(ends[0], base);
  shares.forEach((share, i) => {
    ctx.lineTo(ends[i], pen.y(share));
    ctx.lineTo(ends[i + 1], pen.y(share));
  });
  ctx.lineTo(ends[shares.length], base);
  if (fill) pen.fill(colour, fill);
  if (stroke) pen.stroke(colour, stroke);
}

// Draw both distributions of a side, and the outlines of the other side.
export function paintDistributions(ctx: CanvasRenderingContext2D, figure: Distributions) {
  const { curves, side, densities } = figure,
    pen = penOf(ctx, figure, highest(figure)),
    { ink } = pen,
    other = densities[side === "seen" ? "unseen" : "seen"];
  for (const kind of KINDS) {
    const shares = densities[side]?.[kind],
      colour = kind === "same" ? ink.positive : ink.negative;
    if (shares) area(pen, curves, shares, colour, 0.16, { width: 1.6 });
  }
  for (const kind of KINDS) {
    const colour = kind === "same" ? ink.positiveText : ink.negativeText;
    if (other) area(pen, curves, other[kind], colour, 0, { width: 1.2, dash: [4, 3] });
  }
  drawThresholds(pen);
}

// Fill one distribution in full colour. Only its errors are visible: the canvas is clipped at the
// threshold, so that a drag paints nothing.
export function paintErrors(ctx: CanvasRenderingContext2D, kind: Kind, figure: Distributions) {
  const pen = penOf(ctx, figure, highest(figure)),
    shares = figure.densities[figure.side]?.[kind],
    colour = kind === "same" ? pen.ink.positive : pen.ink.negative;
  if (shares) area(pen, figure.curves, shares, colour, 0.6);
}

// Draw one line per class, and the median of all classes on top.
export function paintClasses(ctx: CanvasRenderingContext2D, place: Place & { rate: Rate }) {
  const { curves, side, rate } = place,
    at = curves.class_thresholds,
    rates = curves[`${side}_${rate}`],
    [rows, columns] = curves.shapes[`${side}_${rate}`],
    pen = penOf(ctx, place, 1),
    { ink } = pen,
    colour = rate === "fmr" ? ink.negative : ink.positive,
    alpha = Math.max(0.18, Math.min(0.6, 12 / rows));
  pen.yAxis(LEVELS.map((value) => ({ value, text: `${100 * value} %` })));
  for (let row = 0; row < rows; row++) {
    const shares = Array.from(at, (_, i) => rates[row * columns + i] / FULL);
    if (row < rows - 1) pen.curve(at, shares, colour, { width: 1, alpha });
    else pen.curve(at, shares, ink.text, { width: 2.5 });
  }
  drawThresholds(pen);
}
