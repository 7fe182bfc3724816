// Consecutive steps with their frames, kept for scrubbing without new requests.
import type { Steps, TimelineAnswer } from "./types.ts";

// F: type of a frame
export class Frames<A extends TimelineAnswer, F> implements Steps<A> {
  frames: F[] = [];

  get last() {
    return this.frames.length - 1;
  }
  at(step: number) {
    return this.frames[step];
  }
  has(step: number) {
    return step <= this.last;
  }

  // Append steps that continue the loaded ones; discard others, which belong to an earlier state.
  add(answer: A) {
    if (answer.first === this.frames.length) this.frames.push(...this.unpack(answer));
  }
  unpack(_answer: A): F[] {
    throw new TypeError("a page knows its own frames");
  }

  forget(step: number) {
    this.frames.length = Math.min(this.frames.length, step);
  }
}

// Return the named fields that an answer contains.
export const pick = <A extends object, K extends keyof A>(answer: A, names: readonly K[]) =>
  Object.fromEntries(
    names.filter((name) => name in answer).map((name) => [name, answer[name]]),
  ) as Pick<A, K>;
