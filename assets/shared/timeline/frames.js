// Steps that come one after another, each with its frame, kept for scrubbing without asking again.
/** @import { Steps, TimelineAnswer } from "./types.js" */

/**
 * @template {TimelineAnswer} A
 * @template F a frame
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

  // Steps that continue what is here; anything else is of another time.
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

// What an answer says of these, as far as it says it.
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
