// Playback of a clock: the step of each frame, and requests for what is shown next.
import type { Motion } from "../types.ts";
import type { Clock } from "./clock.ts";
import { nextQuestion } from "./ahead.ts";

const RETRY = 700; // ms until a page asks again for what Python prepares

type AnyClock = Clock<any, any, any>;

// Show a step in every frame until the clock is paused.
export function tickSoon(clock: AnyClock) {
  clock.ticking ??= requestAnimationFrame(() => {
    clock.ticking = null;
    if (clock.playing && !clock.closed) tick(clock);
  });
}

function tick(clock: AnyClock) {
  const now = performance.now(),
    { history, stride, unseen } = clock;
  // Paint a step that arrived meanwhile before going on, so that none is skipped. The next step is
  // expected at once, so that its answer triggers the next request.
  if (unseen) clock.repaint();
  if (clock.wanted === undefined && now >= clock.due && history.last >= 0 && !clock.goal) {
    const to = (Math.floor(clock.at / stride) + 1) * stride,
      isLoaded = history.has(to);
    if (to > clock.most)
      return clock.pause(`${clock.at} steps; the history is full. ${clock.full}`);
    if (!(unseen && isLoaded)) {
      clock.due = Math.max(clock.due + 1000 / clock.speeds[clock.speed][2], now - 100);
      if (isLoaded) clock.arrive(to);
      else clock.wanted = to;
    }
  }
  askAhead(clock);
  clock.repaint();
  tickSoon(clock);
}

// Let Python compute further steps while the page shows loaded ones. While an answer is handled the
// link is still busy; the request is sent right after.
export function askAhead(clock: AnyClock, answered = false) {
  const busy = (clock.link.busy && !answered) || clock.link.waiting;
  if (busy || clock.goal || clock.closed || clock.preparing) return;
  const question = nextQuestion(clock);
  if (question) clock.ask(question);
}

// Fetch steps up to the one that a link names.
export function approach(clock: AnyClock) {
  const { history, goal } = clock;
  if (history.has(goal)) {
    clock.at = goal;
    clock.goal = 0;
    clock.message("");
    clock.panel();
    clock.rest();
    return;
  }
  clock.at = Math.min(goal, Math.max(history.last, 0));
  clock.message(`Computing up to step ${goal}: ${history.last} …`);
  clock.ask({ want: goal, frames: [goal] });
}

// Report a delay: the page shows a recording, or a step that Python has dropped, and the next step
// waits until Python has computed those before it.
export function reportDelay(clock: AnyClock) {
  const { last } = clock.history,
    late =
      clock.recordedTo < 0 && clock.trained < last && (clock.playing || clock.wanted !== undefined);
  if (late)
    clock.message(`Computing up to step ${last}, to continue from there: ${clock.trained} …`);
  else if (clock.late) clock.message("");
  clock.late = late;
}

// Report what Python prepares before the first step; ask again until it is ready.
export function prepare(clock: AnyClock, why: string, failed: boolean) {
  const { revision } = clock;
  clock.message(why);
  if (!failed)
    clock.preparing = setTimeout(() => {
      if (!clock.closed && revision === clock.revision) clock.requestFirst();
    }, RETRY);
}

// Return the motion for recordings: from the first step to the last one and back.
export function scrubMotions(clock: AnyClock): Motion[] {
  const { at, history } = clock,
    { last } = history;
  if (last < 1) return [];
  const pose = (share: number) => {
    clock.pause();
    clock.to(Math.round(last * (1 - Math.abs(1 - 2 * share))));
  };
  return [{ title: `step 0 to ${last} and back`, pose, end: () => clock.to(at) }];
}
