// Numbers of the Thresholds page at each position of the threshold, and its two figures.
import type { Ink, Theme } from "../../kit/types.ts";
import type { Curves, Ends, Kind, Rate, Side } from "./types.ts";
import { INK, niceStep } from "../../kit/colours.ts";

export const PAD = { left: 44, right: 14, top: 20, bottom: 36 };
const KINDS: Kind[] = ["different", "same"];
const STEPS_PER_BAR = 4;
const LEVELS = [0, 0.01, 0.1, 0.25, 0.5, 1]; // marks of a rate, on a square-root scale

// Return the index of the threshold closest to `t`.
// thresholds: ascending
export function closest(thresholds: ArrayLike<number>, t: number) {
  let low = 0,
    high = thresholds.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (thresholds[middle] <= t) low = middle;
    else high = middle;
  }
  return t - thresholds[low] <= thresholds[high] - t ? low : high;
}

// Return a rate of a side at a threshold given by its index, with its interval and the numbers of
// pairs.
export function rateAt(curves: Curves, side: Side, rate: Rate, k: number) {
  const facts = curves.sides[side],
    kind: Kind = rate === "fmr" ? "different" : "same",
    of = facts?.[kind] ?? 0,
    accepted = curves[`${side}_${kind}`][k],
    count = rate === "fmr" ? accepted : of - accepted,
    within = curves[`${side}_within`],
    width = curves.thresholds.length,
    row = rate === "fmr" ? 0 : 2;
  return {
    value: count / of,
    count,
    of,
    within: [within[row * width + k], within[(row + 1) * width + k]] as Ends,
  };
}

// Return the share of the pairs of a kind in each bar of the figure, which has several equal steps.
export function density(curves: Curves, side: Side, kind: Kind) {
  const accepted = curves[`${side}_${kind}`],
    of = curves.sides[side]?.[kind] ?? 1,
    ends = bars(curves);
  return Float64Array.from(
    { length: ends.length - 1 },
    (_, i) => (accepted[ends[i]] - accepted[ends[i + 1]]) / of,
  );
}

// Return the indices of the thresholds at the ends of the bars.
const bars = ({ even }: Curves) => even.filter((_, i) => i % STEPS_PER_BAR === 0);

export function scale({ thresholds }: Curves, width: number) {
  const low = thresholds[0],
    span = thresholds[thresholds.length - 1] - low,
    inner = width - PAD.left - PAD.right;
  return {
    x: (t: number) => PAD.left + (inner * (t - low)) / span,
    t: (x: number) => low + (span * (x - PAD.left)) / inner,
    low,
    span,
  };
}

function paintAxis(
  ctx: CanvasRenderingContext2D,
  curves: Curves,
  width: number,
  height: number,
  ink: Ink,
) {
  const { x, low, span } = scale(curves, width),
    step = niceStep(span, Math.max(3, width / 110)),
    digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)),
    base = height - PAD.bottom;
  ctx.font = "12px system-ui, sans-serif";
  ctx.fillStyle = ink.text;
  ctx.strokeStyle = ink.axis;
  ctx.lineWidth = 1;
  ctx.textAlign = "center";
  ctx.beginPath();
  ctx.moveTo(PAD.left, base + 0.5);
  ctx.lineTo(width - PAD.right, base + 0.5);
  for (let t = Math.ceil(low / step) * step; t <= low + span + 1e-9; t += step) {
    const at = Math.round(x(t)) + 0.5;
    ctx.moveTo(at, base);
    ctx.lineTo(at, base + 4);
    const shown = Math.abs(t) < step / 2 ? 0 : t;
    ctx.fillText(shown.toFixed(digits).replace("-", "−"), at, base + 17);
  }
  ctx.stroke();
  ctx.fillText("cosine similarity", (PAD.left + width - PAD.right) / 2, height - 4);
}

export interface Distributions {
  curves: Curves;
  side: Side;
  theme: Theme;
  width: number;
  height: number;
  densities: Partial<Record<Side, Record<Kind, Float64Array>>>;
}

// shares: of the bars
function outline(
  ctx: CanvasRenderingContext2D,
  shares: Float64Array,
  { curves, width, height, densities }: Distributions,
) {
  const { x } = scale(curves, width),
    base = height - PAD.bottom,
    all = Object.values(densities).flatMap((each) => Object.values(each)),
    top = Math.max(...all.map((each) => each.reduce((a, b) => Math.max(a, b), 0))),
    y = (share: number) => base - (base - PAD.top) * Math.sqrt(share / top),
    ends = Array.from(bars(curves), (k) => x(curves.thresholds[k]));
  ctx.beginPath();
  ctx.moveTo(ends[0], base);
  shares.forEach((share, i) => {
    ctx.lineTo(ends[i], y(share));
    ctx.lineTo(ends[i + 1], y(share));
  });
  ctx.lineTo(ends[shares.length], base);
}

// Draw both distributions of a side, and the outlines of the other side.
export function paintDistributions(ctx: CanvasRenderingContext2D, figure: Distributions) {
  const { curves, side, theme, width, height, densities } = figure,
    ink = INK[theme],
    other = densities[side === "seen" ? "unseen" : "seen"];
  ctx.clearRect(0, 0, width, height);
  for (const kind of KINDS) {
    const shares = densities[side]?.[kind];
    if (!shares) continue;
    outline(ctx, shares, figure);
    ctx.fillStyle = ctx.strokeStyle = kind === "same" ? ink.positive : ink.negative;
    ctx.globalAlpha = 0.16;
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.lineWidth = 1.6;
    ctx.stroke();
  }
  ctx.setLineDash([4, 3]);
  ctx.lineWidth = 1.2;
  for (const kind of other ? KINDS : []) {
    if (!other) continue;
    outline(ctx, other[kind], figure);
    ctx.strokeStyle = kind === "same" ? ink.positiveText : ink.negativeText;
    ctx.stroke();
  }
  ctx.setLineDash([]);
  paintAxis(ctx, curves, width, height, ink);
}

// Fill one distribution in full colour. Only its errors are visible: the canvas is clipped at the
// threshold, so that a drag paints nothing.
export function paintErrors(ctx: CanvasRenderingContext2D, kind: Kind, figure: Distributions) {
  const { side, theme, width, height, densities } = figure,
    shares = densities[side]?.[kind];
  ctx.clearRect(0, 0, width, height);
  if (!shares) return;
  outline(ctx, shares, figure);
  ctx.fillStyle = kind === "same" ? INK[theme].positive : INK[theme].negative;
  ctx.globalAlpha = 0.6;
  ctx.fill();
  ctx.globalAlpha = 1;
}

// Draw one line per class, and the median of all classes on top.
export function paintClasses(
  ctx: CanvasRenderingContext2D,
  {
    curves,
    side,
    rate,
    theme,
    width,
    height,
  }: { curves: Curves; side: Side; rate: Rate; theme: Theme; width: number; height: number },
) {
  const ink = INK[theme],
    { x } = scale(curves, width),
    base = height - PAD.bottom,
    at = curves.class_thresholds,
    rates = curves[`${side}_${rate}`],
    [rows, columns] = curves.shapes[`${side}_${rate}`],
    y = (share: number) => base - (base - PAD.top) * Math.sqrt(share);
  ctx.clearRect(0, 0, width, height);
  ctx.font = "12px system-ui, sans-serif";
  ctx.textAlign = "right";
  for (const level of LEVELS) {
    const place = Math.round(y(level)) + 0.5;
    ctx.strokeStyle = ink.grid;
    ctx.beginPath();
    ctx.moveTo(PAD.left, place);
    ctx.lineTo(width - PAD.right, place);
    ctx.stroke();
    ctx.fillStyle = ink.text;
    ctx.fillText(`${100 * level} %`, PAD.left - 5, place + 4);
  }
  for (let row = 0; row < rows; row++) {
    const isMedian = row === rows - 1;
    ctx.beginPath();
    for (let i = 0; i < columns; i++) ctx.lineTo(x(at[i]), y(rates[row * columns + i] / 65535));
    ctx.strokeStyle = isMedian ? ink.text : rate === "fmr" ? ink.negative : ink.positive;
    ctx.lineWidth = isMedian ? 2.5 : 1;
    ctx.globalAlpha = isMedian ? 1 : Math.max(0.18, Math.min(0.6, 12 / rows));
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  paintAxis(ctx, curves, width, height, ink);
}

// Return the classes with the highest rates at threshold t, as positions and rates, highest first.
export function worstClasses(curves: Curves, side: Side, rate: Rate, t: number, most: number) {
  const [rows, columns] = curves.shapes[`${side}_${rate}`],
    rates = curves[`${side}_${rate}`],
    column = closest(curves.class_thresholds, t);
  return Array.from({ length: rows - 1 }, (_, row) => ({
    row,
    value: rates[row * columns + column] / 65535,
  }))
    .sort((a, b) => b.value - a.value)
    .slice(0, most);
}
