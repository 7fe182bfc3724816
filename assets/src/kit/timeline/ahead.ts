// Choice of the next request, so that each step is loaded before it is shown.
import type { Steps, TimelineRequest } from "./types.ts";

// position of a clock
export interface Going {
  history: Steps<any>;
  at: number; // step shown
  wanted: number | undefined; // step to show once it is loaded
  playing: boolean;
  most: number;
  trained: number; // last step that Python has computed
  recordedTo: number; // last step of a recording, -1 without one
  began: number; // time at which playback last started
}

// Return what to request next, null if nothing. `ahead`: frames computed before they are shown, one
// every `stride` steps.
export function nextQuestion(
  going: Going,
  ahead: number,
  stride: number,
): Pick<TimelineRequest<any>, "want" | "frames"> | null {
  const { history, at, wanted, playing, trained } = going,
    { last } = history,
    missing = (from: number) => missingFrames(going, from, at + ahead * stride, stride);
  if (wanted !== undefined && wanted <= last) return { want: wanted, frames: missing(wanted) };
  if (wanted !== undefined && !playing) return { want: wanted, frames: [wanted] };
  if (!playing) return null;
  if (going.recordedTo < 0 && trained < last) return { want: last, frames: [] };
  const next = (Math.floor(at / stride) + ahead) * stride,
    want = Math.min(Math.max(wanted ?? 0, next), going.most);
  if (last < want) return { want, frames: [] };
  const frames = missing(at + 1);
  if (frames.length) return { want: frames[frames.length - 1], frames };
  // While a recording plays the engine catches up, so that playback can continue from the end or
  // from any change.
  const idle = trained < last && performance.now() - going.began > 1500;
  return idle ? { want: last, frames: [] } : null;
}

// Return frames of known steps that will be shown next and are not loaded.
function missingFrames({ history, wanted }: Going, from: number, end: number, stride: number) {
  const to = Math.min(history.last, end);
  const found: number[] = [];
  for (let k = Math.ceil(from / stride) * stride; k <= to && found.length < 40; k += stride)
    if (!history.has(k)) found.push(k);
  const asked = wanted !== undefined && wanted <= history.last && !history.has(wanted);
  if (asked && !found.includes(wanted)) found.unshift(wanted);
  return found;
}
