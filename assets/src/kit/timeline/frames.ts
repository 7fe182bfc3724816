// Consecutive steps with their frames, kept for scrubbing without new requests.
import type { Steps, TimelineAnswer } from "./types.ts";

// F: type of a frame
export class Frames<A extends TimelineAnswer, F> implements Steps<A> {
  readonly frames: F[] = [];
  private readonly unpack: (answer: A, before?: F) => F[];

  // unpack: returns the frames of an answer, which follow the frame `before`
  constructor(unpack: (answer: A, before?: F) => F[]) {
    this.unpack = unpack;
  }

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
    if (answer.first === this.frames.length)
      this.frames.push(...this.unpack(answer, this.frames.at(-1)));
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
