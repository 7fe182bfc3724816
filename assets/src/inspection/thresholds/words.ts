// Numbers of the Thresholds page as text.
import type { Ends, Rate } from "./types.ts";

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
// Return the ends of an interval of shares.
export const interval = ([low, high]: Ends) =>
  `${percent(low).replace(" %", "")} to ${percent(high)}`;
// Return a cosine similarity with three decimals.
export const similarity = (t: number) => t.toFixed(3).replace("-", "−");
// Return a quotient with two digits.
export const ratio = (x: number) => x.toPrecision(2);
