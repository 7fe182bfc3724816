// Numbers of the Thresholds page at each position of the threshold.
import type { Curves, Interval, Kind, Rate, Side } from "./types.ts";

const STEPS_PER_BAR = 4;

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
    row = rate === "fmr" ? 0 : 2,
    [low, high] = [within[row * width + k], within[(row + 1) * width + k]];
  return {
    value: count / of,
    count,
    of,
    within: (Number.isNaN(low) ? null : [low, high]) as Interval,
  };
}

// Return the threshold at which both rates of the unseen classes are closest.
export function equalErrors(curves: Curves) {
  const gap = (k: number) =>
    Math.abs(rateAt(curves, "unseen", "fmr", k).value - rateAt(curves, "unseen", "fnmr", k).value);
  return curves.thresholds.reduce((best, t, k) => (gap(k) < best.gap ? { t, gap: gap(k) } : best), {
    t: 0,
    gap: Infinity,
  }).t;
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
export const bars = ({ even }: Pick<Curves, "even">) =>
  even.filter((_, i) => i % STEPS_PER_BAR === 0);

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
