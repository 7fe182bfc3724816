// What a page asks for next, so that the step it will show is here when its time comes.
/** @import { Steps, TimelineRequest } from "./types.js" */

/**
 * @typedef {object} Going where the page stands
 * @property {Steps<any>} history
 * @property {number} at the step shown
 * @property {number | undefined} wanted the step that is shown once it is here
 * @property {boolean} playing
 * @property {number} stride
 * @property {number} ahead frames that are made before they are looked at
 * @property {number} most
 * @property {number} trained the last step that Python has
 * @property {number} recordedTo the last step of a recording, -1 without one
 * @property {number} began when it was last played
 */

/**
 * @param {Going} going
 * @returns {Pick<TimelineRequest<any>, "want" | "frames"> | null}
 */
export function nextQuestion(going) {
  const { history, at, wanted, playing, stride, trained } = going,
    { last } = history;
  if (wanted !== undefined && wanted <= last)
    return { want: wanted, frames: missing(going, wanted) };
  if (wanted !== undefined && !playing) return { want: wanted, frames: [wanted] };
  if (!playing) return null;
  if (going.recordedTo < 0 && trained < last) return { want: last, frames: [] };
  const ahead = (Math.floor(at / stride) + going.ahead) * stride,
    want = Math.min(Math.max(wanted ?? 0, ahead), going.most);
  if (last < want) return { want, frames: [] };
  const frames = missing(going, at + 1);
  if (frames.length) return { want: frames[frames.length - 1], frames };
  // A recording plays: the engine catches up meanwhile, so that it goes on from its end, or from
  // any change.
  const idle = trained < last && performance.now() - going.began > 1500;
  return idle ? { want: last, frames: [] } : null;
}

// Frames of known steps that will be shown next and are not here.
/**
 * @param {Going} going
 * @param {number} from
 */
function missing({ history, at, wanted, stride, ahead }, from) {
  const to = Math.min(history.last, at + ahead * stride);
  /** @type {number[]} */
  const found = [];
  for (let k = Math.ceil(from / stride) * stride; k <= to && found.length < 40; k += stride)
    if (!history.has(k)) found.push(k);
  const asked = wanted !== undefined && wanted <= history.last && !history.has(wanted);
  if (asked && !found.includes(wanted)) found.unshift(wanted);
  return found;
}
