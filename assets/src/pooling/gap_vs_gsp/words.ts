// Numbers of a step in words.
import type { Frame, Measure } from "./types.ts";
import { OWN } from "./draw.ts";
import { SIDES } from "./history.ts";

export const percent = (x: number) => (Number.isFinite(x) ? `${(100 * x).toFixed(1)} %` : "–");

// Return a measure as the table shows it.
export const cellText = (name: Measure, value: number) =>
  name === "on_shared" ? percent(value) : Number.isFinite(value) ? value.toFixed(3) : "–";

// Return how much weight both poolings put on the shared tokens in bags of a class.
export function classText(frame: Frame, label: number) {
  const told = SIDES.map((side) => {
    const { onShared, weight, active, classes } = frame[side],
      used = Array.from({ length: OWN }, (_, s) => s).filter((s) =>
        active(label, classes * OWN + s),
      ),
      names = used.map((s) => `S${s + 1} ${percent(weight(label, classes * OWN + s))}`).join(", "),
      hull = names ? `in the hull: ${names}` : "none in the hull";
    return `${side.toUpperCase()} puts ${percent(onShared[label])} of its weight on shared tokens (${hull})`;
  });
  return `Class ${label + 1}: ${told.join("; ")}.`;
}
