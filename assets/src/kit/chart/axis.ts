// Axes of charts: scales, round numbers and their labels.
import { niceStep } from "../colours.ts";

export interface Axis {
  low: number;
  high: number;
  scale?: "linear" | "log" | "sqrt"; // linear by default
  name?: string;
}
export interface Tick {
  value: number;
  text: string;
}

const SCALES: Record<string, [to: (v: number) => number, back: (v: number) => number]> = {
  linear: [(v) => v, (v) => v],
  log: [Math.log, Math.exp],
  sqrt: [Math.sqrt, (v) => v * v],
};

// Return the function from values to pixels; `from` and `to` are the pixels of both ends.
export function position({ low, high, scale = "linear" }: Axis, from: number, to: number) {
  const [f] = SCALES[scale],
    start = f(low),
    unit = (to - from) / (f(high) - start);
  return scale === "linear"
    ? (value: number) => from + unit * (value - start)
    : (value: number) => from + unit * (f(value) - start);
}

// Return the value at a share of the length of an axis; shares are limited to 0..1.
export function valueAt({ low, high, scale = "linear" }: Axis, share: number) {
  const [f, back] = SCALES[scale],
    inside = Math.min(Math.max(share, 0), 1);
  return back(f(low) + inside * (f(high) - f(low)));
}

// Return about `most` round values of an axis, powers of ten if it is logarithmic.
export function ticks({ low, high, scale }: Axis, most: number): Tick[] {
  if (scale === "log") {
    const first = Math.ceil(Math.log10(low) - 1e-9),
      last = Math.floor(Math.log10(high) + 1e-9),
      by = Math.ceil((last - first + 1) / Math.max(most, 2)),
      count = Math.floor((last - first) / by) + 1;
    return Array.from({ length: count }, (_, i) => powerOfTen(last - i * by));
  }
  const step = niceStep(high - low, most),
    first = Math.ceil(low / step - 1e-9),
    count = Math.floor(high / step + 1e-9) - first + 1,
    digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Array.from({ length: count }, (_, i) => {
    const value = (first + i) * step;
    return { value, text: value === 0 ? "0" : value.toFixed(digits).replace("-", "−") };
  });
}

function powerOfTen(exponent: number): Tick {
  const value = 10 ** exponent;
  return { value, text: Math.abs(exponent) < 3 ? String(value) : `1e${exponent}` };
}
