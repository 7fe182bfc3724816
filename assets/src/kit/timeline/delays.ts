// Messages and requests of a clock while steps are not loaded yet.
import type { Clock } from "./clock.ts";

const RETRY = 700; // ms until a page asks again for what Python prepares

// Fetch steps up to the one that a link names.
export function approach(clock: Clock<any>) {
  const { history, goal, hooks } = clock;
  if (history.has(goal)) {
    clock.at = goal;
    clock.goal = 0;
    hooks.message("");
    hooks.onGoal();
    return;
  }
  clock.at = Math.min(goal, Math.max(history.last, 0));
  hooks.message(`Computing up to step ${goal}: ${history.last} …`);
  clock.ask({ want: goal, frames: [goal] });
}

// Report a delay: the page shows a recording, or a step that Python has dropped, and the next step
// waits until Python has computed those before it.
export function reportDelay(clock: Clock<any>) {
  const { hooks, recordedTo, trained, playing, wanted } = clock,
    { last } = clock.history,
    late = recordedTo < 0 && trained < last && (playing || wanted !== undefined);
  if (late) hooks.message(`Computing up to step ${last}, to continue from there: ${trained} …`);
  else if (clock.late) hooks.message("");
  clock.late = late;
}

// Report what Python prepares before the first step; ask again until it is ready.
export function prepare(clock: Clock<any>, why: string, failed: boolean) {
  clock.hooks.message(why);
  if (!failed) clock.preparing = setTimeout(() => clock.requestFirst(), RETRY);
}
