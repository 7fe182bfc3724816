// Consecutive steps with their frames, kept for scrubbing without new requests.
/** @import { Steps, TimelineAnswer } from "./types.js" */

/**
 * @template {TimelineAnswer} A
 * @template F type of a frame
 * @implements {Steps<A>}
 */
export class Frames {
  /** @type {F[]} */
  frames = [];

  get last() {
    return this.frames.length - 1;
  }
  /** @param {number} step */
  at(step) {
    return this.frames[step];
  }
  /** @param {number} step */
  has(step) {
    return step <= this.last;
  }

  // Append steps that continue the loaded ones; discard others, which belong to an earlier state.
  /** @param {A} answer */
  add(answer) {
    if (answer.first === this.frames.length) this.frames.push(...this.unpack(answer));
  }
  /**
   * @param {A} _answer
   * @returns {F[]}
   */
  unpack(_answer) {
    throw new TypeError("a page knows its own frames");
  }

  /** @param {number} step */
  forget(step) {
    this.frames.length = Math.min(this.frames.length, step);
  }
}

// Return the named fields that an answer contains.
/**
 * @template {object} A
 * @template {keyof A} K
 * @param {A} answer
 * @param {readonly K[]} names
 */
export const pick = (answer, names) =>
  /** @type {Pick<A, K>} */ (
    Object.fromEntries(names.filter((name) => name in answer).map((name) => [name, answer[name]]))
  );
