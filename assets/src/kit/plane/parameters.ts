// Defaults of a loss and of the scene.
import type { Hyper, Schema } from "../types.ts";
import type { Scene } from "./types.ts";

const OF_THE_NORMALISED = ["s", "r", "rho", "m1"]; // a loss with these has a normalised margin

/** Return the default parameters of a loss. */
export const defaultsOf = (schema: Schema, loss: string): Hyper =>
  Object.fromEntries(schema.losses[loss].controls.map((c) => [c.name, c.default ?? null]));

/**
 * Return the first kind of margin of a loss. A normalised margin, which Python computes, keeps the
 * field active while other parameters change.
 */
export function marginOf(schema: Schema, loss: string): Pick<Scene, "margin" | "mu"> {
  const names = schema.losses[loss].controls.map((c) => c.name),
    has = OF_THE_NORMALISED.every((name) => names.includes(name));
  return { margin: has ? "normalised" : "raw", mu: null };
}

/**
 * Take over parameters as Python has limited them to their ranges. Return true if one of the scene
 * differed.
 */
export function adopt(scene: Scene, hyper: Hyper): boolean {
  const differs = Object.entries(hyper).some(
    ([name, value]) =>
      name in scene.hyper &&
      typeof value === "number" &&
      Math.abs(value - Number(scene.hyper[name])) > 1e-9,
  );
  if (differs) scene.hyper = hyper;
  return differs;
}
