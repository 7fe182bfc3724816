// Values of a panel without its elements: positions on a slider, typed numbers, defaults, presets.
import type { Hyper, Loss, Parameter, Setting, Slider } from "../types.ts";
import { tidy } from "../dom.ts";

const NOTCHES = 1000; // positions of a logarithmic slider
const TINY = 5e-5; // coordinates below this are shown as 0

// Return x limited to low..high.
export const clamp = (x: number, low: number, high: number) => Math.min(Math.max(x, low), high);

// Return how the bar of a slider counts: its attributes, the position of a value, and the value at
// a position, rounded to four decimals. The range is widened to include the current value.
export function sliderRange(
  { low, high, log, step }: Pick<Slider, "low" | "high" | "log" | "step">,
  value: number | null,
) {
  const least = Math.min(low, value ?? low),
    most = Math.max(high, value ?? high);
  const position = (x: number) =>
      log ? (NOTCHES * Math.log(x / least)) / Math.log(most / least) : x,
    valueAt = (t: number) => Number(tidy(log ? least * (most / least) ** (t / NOTCHES) : t));
  return log
    ? { min: 0, max: NOTCHES, step: 1, position, valueAt }
    : { min: least, max: most, step, position, valueAt };
}

// Return the number that was typed, null unless it is finite.
export function typedNumber(text: string) {
  const x = text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(x) ? x : null;
}

// Return a typed coordinate within -reach..reach, 0 if it would be shown as 0.
export const withinReach = (x: number, reach: number) =>
  Math.abs(x) < TINY ? 0 : clamp(x, -reach, reach);

// Return the value of a hyper-parameter; null is infinite.
export const settingOf = (hyper: Hyper, { name, default: otherwise }: Parameter): Setting =>
  hyper[name] ?? (name in hyper ? null : (otherwise ?? null));

// Return the default hyper-parameters of a loss.
export const defaultsOf = ({ controls }: Pick<Loss, "controls">): Hyper =>
  Object.fromEntries(controls.map((c) => [c.name, c.default ?? null]));

// Return hyper-parameters in words, for figures that are saved.
export const hyperText = (hyper: Hyper) =>
  Object.entries(hyper)
    .map(([name, v]) => `${name} = ${v === null ? "∞" : typeof v === "number" ? tidy(v) : v}`)
    .join(", ");

// Return the index of the preset whose state equals the given one, null if there is none.
export function findPreset(offers: readonly { state?: unknown }[], state: unknown) {
  const text = JSON.stringify(state),
    found = offers.findIndex((offer) => JSON.stringify(offer.state) === text);
  return found < 0 ? null : found;
}
