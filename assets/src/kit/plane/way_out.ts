// Help for a scanning point without a force: the reason, and a change of the scene that restores
// the force.
import type { Field, Scene } from "./types.ts";
import type { Place } from "../types.ts";
import { stateOf, tidy } from "../dom.ts";

const LIFT = 0.3; // energy of a triplet after its margin was raised
const NEAR = 1e-6; // numbers closer than this count as equal

export type WayOut = { text: string; label?: string; change: Partial<Scene> };
export interface Defaults {
  bring: Place | null; // place at which the scanning point would be active
  parameters: Pick<Scene, "hyper" | "margin" | "mu">; // defaults of the loss
  home: Pick<Scene, "anchor" | "positive" | "negative" | "view">; // default points and view
  margin: string | null; // hyper-parameter that is added to the energy
  fixed: boolean; // the figure belongs to a lesson, which gives the task
}

const same = (a: unknown, b: unknown): boolean =>
  Array.isArray(a) && Array.isArray(b)
    ? a.every((x, i) => same(x, b[i]))
    : typeof a === "number" && typeof b === "number"
      ? Math.abs(a - b) < NEAR
      : (a ?? null) === (b ?? null);

// Returns text and button; no button if there is no label
export function wayOut(
  f: Pick<Field, "quiet" | "flat" | "hit" | "raw" | "m1" | "m2">,
  scene: Scene,
  { bring, parameters, home, margin, fixed }: Defaults,
): WayOut {
  const { probe } = scene,
    nowhere = `The ${probe} has no gradient anywhere in this view`;
  if (f.quiet) {
    const text = `${nowhere}. `;
    if (fixed) return { text, change: {} };
    if (Object.entries(parameters.hyper).some(([name, value]) => !same(scene.hyper[name], value)))
      return { text, label: "Reset the parameters", change: parameters };
    if ((Object.keys(home) as (keyof typeof home)[]).some((k) => !same(scene[k], home[k])))
      return { text, label: "Reset points and view", change: home };
    return margin && f.raw !== null && f.m1 !== null
      ? raised(text, f, scene, margin)
      : { text, change: {} };
  }
  if (f.flat) {
    const why = `${nowhere}: the loss does not depend on its position`;
    return probe !== "anchor" && same(scene.anchor, [0, 0])
      ? {
          text: `${why}, because this loss uses its inner product with A, and A is at the origin. `,
          label: "Move A",
          change: { anchor: [-0.5, 0.25] },
        }
      : { text: `${why}. `, change: {} };
  }
  if (f.hit || !bring || fixed) return { text: "", change: {} };
  return {
    text: `This triplet is ${stateOf(f)}; all forces are zero. `,
    label: `move the ${probe} in`,
    change: { [probe]: bring },
  };
}

// Return the change that raises the margin until the current triplet has a loss.
function raised(
  text: string,
  { raw, m1, m2 }: Pick<Field, "raw" | "m1" | "m2">,
  scene: Scene,
  margin: string,
): WayOut {
  const by = Math.min(LIFT, (m2 ?? Infinity) / 2) - Number(raw),
    value = Number((Number(m1) + by).toFixed(3)),
    change =
      scene.margin === "normalised"
        ? { mu: Number(scene.mu) + by }
        : { hyper: { ...scene.hyper, [margin]: value } };
  return { text, label: `Set the margin to ${tidy(value)}`, change };
}
