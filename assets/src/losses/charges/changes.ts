// Changes of a simulation at one of its steps: another law of motion, moved points.
import type { Player } from "../../kit/timeline/player.ts";
import type { ChargesKinds, Law, Moved, Spec } from "./types.ts";

// Return the law that moves the points after a step.
export const lawAt = ({ changes, law }: Spec, step: number) =>
  changes.findLast((c) => c.at <= step && c.law)?.law ?? law;

// Return the spec with a change at step k, later changes dropped: a moved point, or else the law.
// At most `most` points are moved per step, the last ones.
export function changedSpec(before: Spec, k: number, law: Law, moved?: Moved, most = Infinity) {
  const spec = structuredClone(before),
    here = spec.changes.find((c) => c.at === k) ?? { at: k, law: null, moved: [] };
  if (moved) here.moved = [...here.moved.filter(([i]) => i !== moved[0]), moved].slice(-most);
  else if (k === 0) {
    spec.law = structuredClone(law);
    here.law = null;
  } else {
    const same = JSON.stringify(law) === JSON.stringify(lawAt(before, k - 1));
    here.law = same ? null : structuredClone(law);
  }
  const kept = spec.changes.filter((c) => c.at < k);
  spec.changes = here.law || here.moved.length ? [...kept, here] : kept;
  return spec;
}

// Return the spec of the step shown with the law of the panel, or a moved point.
const changed = ({ clock, changes, options }: Player<ChargesKinds>, moved?: Moved) =>
  changedSpec(clock.state, clock.at, changes.now.law, moved, options.limits.moved);

// Show the step with a law or a point that is still being moved.
export function draft(player: Player<ChargesKinds>, moved?: Moved) {
  const { clock, playback } = player,
    { at } = clock;
  if (!clock.drafting) playback.hold();
  clock.ask({ state: changed(player, moved), draft: true, have: at - 1, want: at, show: at });
}

// Continue from the step shown with the law of the panel, or a moved point.
export function commit(player: Player<ChargesKinds>, moved?: Moved) {
  const { clock, playback, changes } = player,
    played = playback.release();
  changes.change(changed(player, moved), clock.at, played);
}
