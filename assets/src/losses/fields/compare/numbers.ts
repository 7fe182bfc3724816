// Numbers of an answer in words.
import type { Compare } from "./compare.tsx";
import type { CompareAnswer, PanelNumbers } from "./types.ts";
import type { Rows } from "../../../kit/panel/panel.tsx";
import { LETTER, POINTS } from "../../../kit/colours.ts";
import { show } from "../../../kit/dom.ts";

/**
 * Format a difference, which may be anything from a rounding error to infinity: three digits, with
 * an exponent if needed.
 */
export function number(x?: number | null): string {
  if (x === null || x === undefined) return "∞";
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size >= 1e-3 && size < 1e4) return String(Number(x.toPrecision(4)));
  const [digits, power] = x.toExponential(1).split("e");
  return `${digits.replace(".0", "")}·10${[...String(Number(power))].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(c)])).join("")}`;
}

/** Return the readouts of one loss; without numbers only their names. */
export const rowsOf = (f?: PanelNumbers): Rows => [
  ["loss", f ? show(f.energy) : ""],
  ["before the clamp", f ? show(f.raw) : ""],
  ["state", f ? (f.hit ? "active" : "no force") : ""],
  ...POINTS.map(
    (name, i) =>
      [`force on ${LETTER[name]}`, f ? Math.hypot(...f.forces[i]).toFixed(3) : ""] as const,
  ),
];

/** Describe the plane of loss k. */
export function describePlane({ state, answer, session }: Compare, k: number): string {
  const { title } = session.schema.losses[state.panels[k].loss],
    [loss, , hit, ...forces] = rowsOf(answer.value?.panels[k]).map(([, text]) => text);
  return `${title}: loss ${loss}, ${hit}, forces on anchor ${forces[0]}, positive ${forces[1]}, negative ${forces[2]}`;
}

/** Describe the plane of the difference. */
export function describeDifference({ state: { pair }, answer }: Compare): string {
  return `loss ${pair[0] + 1} minus loss ${pair[1] + 1}: largest difference in view ${number(answer.value?.largest)}`;
}

/** Return the numbers at a place for each plane, the difference last; none if they do not fit. */
export function chipTexts({ there, left }: CompareAnswer, count: number): string[] {
  if (!there || !left || there.length !== count) return [];
  const text = (loss: string, force: number | null) => `loss ${loss} · force ${number(force)}`;
  return [
    ...there.map(({ energy, force }) => text(show(energy), Math.hypot(...force))),
    left.energy === null ? "∞" : text(number(left.energy), left.force),
  ];
}
