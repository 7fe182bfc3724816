// Numbers of the Thresholds page as text.
import type { Interval, Rate } from "./types.ts";

export const RATES: Record<Rate, string> = { fmr: "False matches", fnmr: "Missed matches" };

// Return a share in 0..1 as a percentage of two digits.
export const percent = (value: number) => {
  const share = 100 * value;
  return share === 0 || share === 100
    ? `${share} %`
    : share < 0.01
      ? "< 0.01 %"
      : `${share >= 10 ? share.toFixed(0) : share.toPrecision(2)} %`;
};
// Return the ends of an interval.
export const interval = (ends: Interval, text = percent) =>
  ends ? `${text(ends[0]).replace(" %", "")} to ${text(ends[1])}` : "unknown";
// Return an interval in parentheses, after a space; nothing if it is unknown.
export const inParentheses = (ends: Interval, text = percent) =>
  ends ? ` (${interval(ends, text)})` : "";
// Return a cosine similarity with three decimals.
export const similarity = (t: number) => t.toFixed(3).replace("-", "−");
// Return a quotient with two digits.
export const ratio = (x: number) => x.toPrecision(2);
