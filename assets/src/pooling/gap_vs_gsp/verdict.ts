// Verdict for the step shown: has the gate learned to ignore the shared tokens?
import type { Frame, SideFrame } from "./types.ts";

const percent = (x: number) => `${(100 * x).toFixed(1)} %`;
const score = (x: number) => (Number.isFinite(x) ? percent(x) : "–");

const onShared = (side: SideFrame) => [...Array(side.classes).keys()].map((c) => side.onShared[c]);

// Return the verdict. "Yes": every class gives the shared tokens less than half of the weight that
// the average gives; "in part": every class gives less than the average. During training, anything
// but yes is "not yet".
// first: the frame before training
// step: step of the frame
// training: true if more steps follow
export function verdict({ gap, gsp }: Frame, first: Frame, step: number, training: boolean) {
  const left = onShared(gsp),
    even = onShared(gap),
    below = (share: number) => left.every((x, c) => x < share * even[c]);
  const word = !gsp.prototypes.length
    ? `Not yet (step ${step}; the prototypes are not initialised)`
    : below(0.5)
      ? "Yes"
      : training
        ? `Not yet (step ${step})`
        : below(1)
          ? "In part"
          : "No";
  const range = `${percent(Math.min(...left))} to ${percent(Math.max(...left))} by class`;
  return (
    `${word}: GSP leaves ${percent(gsp.held.on_shared)} of its weight on the shared tokens (${range}), ` +
    `GAP leaves ${percent(gap.held.on_shared)}. MAP@R: GSP ${score(gsp.held.map_at_r)}, ` +
    `GAP ${score(gap.held.map_at_r)}, untrained network ${score(first.gap.held.map_at_r)}.`
  );
}
