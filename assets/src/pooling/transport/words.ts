// Numbers of the Transport page as text.
import type { Shown, State } from "./types.ts";
import { tidy } from "../../kit/dom.ts";
import { SIDE, STEPS, split } from "./draw.ts";

export const POOLINGS = ["linear programme", "smoothed", "average"];

// Return a number with four digits.
export const plain = (v: number) =>
  v === null
    ? "–"
    : v === 0
      ? "0"
      : Math.abs(v) < 1e-3 || Math.abs(v) >= 1e4
        ? v.toExponential(2)
        : String(Number(v.toPrecision(4)));

// Return the shares of the three colours of a code.
export function mixture(code: number) {
  const [red, blue] = split(code),
    share = (steps: number) => tidy(steps / STEPS);
  return `red ${share(red)}, blue ${share(blue)}, background ${share(STEPS - red - blue)}`;
}

// Return the numbers of the cell under the pointer, or the brush if there is none.
export function describeCell({ answer: a, mark: j, brush }: Shown, { pixels }: State) {
  if (j === null || !a)
    return `Brush: ${mixture(brush.code)}. Point at a pixel for its numbers; arrow keys and space paint.`;
  const n = SIDE * SIDE,
    [lp, smoothed, average] = [0, 1, 2].map((k) => a.weights[k * n + j].toFixed(4)),
    taken = a.state.prototypes.map((_, i) => `π${i + 1} ${a.plan[i * n + j].toFixed(3)}`);
  return `Row ${Math.floor(j / SIDE) + 1}, column ${(j % SIDE) + 1}: ${mixture(pixels[j])}. Weights ◇ ${lp} ○ ${smoothed} □ ${average}. Gate ${a.gates[j].toFixed(3)}, nearest prototype ${a.distance[j].toFixed(3)} away; ${taken.join(", ")}, left out ${a.left[j].toFixed(3)}.`;
}
