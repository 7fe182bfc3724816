// Steps that the page has received, kept for scrubbing without new requests.

/** @import { ChargesAnswer, Column, Frame, Moved } from "./types.js" */
import { Frames, pick } from "../../kit/timeline/frames.js";

const PORTRAIT = /** @type {const} */ ([
  ...["density", "corners", "reach", "outer", "inner"],
  ...["violated", "valid", "third_edge", "norms"],
]);

/** @extends {Frames<ChargesAnswer, Frame>} */
export class History extends Frames {
  /** @type {{ step: number, frame: Frame } | null} */
  drafted = null;

  /** @param {number} step */
  at(step) {
    return this.drafted?.step === step ? this.drafted.frame : this.frames[step];
  }

  /** @param {ChargesAnswer} answer */
  add(answer) {
    this.drafted = null;
    super.add(answer);
    const shown = this.frames[answer.shown];
    if (shown) shown.portrait = pick(answer, PORTRAIT);
  }

  /** @param {ChargesAnswer} answer */
  preview(answer) {
    const frame = this.unpack(answer)[answer.shown - answer.first];
    if (!frame) return;
    frame.portrait = pick(answer, PORTRAIT);
    this.drafted = { step: answer.shown, frame };
  }

  // Show a dragged point at once, before its forces are known.
  /**
   * @param {number} step
   * @param {Moved} indexxy
   */
  setPoint(step, [index, x, y]) {
    const frame = this.at(step);
    if (!frame) return;
    const positions = frame.positions.slice();
    positions.set([x, y], 2 * index);
    this.drafted = { step, frame: { ...frame, positions } };
  }

  // Keep showing the first dropped step until its replacement arrives.
  /** @param {number} step */
  forget(step) {
    const seen = this.at(step);
    super.forget(step);
    this.drafted = seen ? { step, frame: seen } : null;
  }

  /**
   * @param {ChargesAnswer} answer
   * @returns {Frame[]}
   */
  unpack(answer) {
    const { positions, forces, means, radii, measures, columns, labels } = answer,
      n = 2 * labels.length,
      c = answer.shapes.radii[1],
      m = columns.length;
    return answer.triplets.map((triplets, k) => ({
      positions: positions.slice(k * n, (k + 1) * n),
      forces: forces.slice(k * n, (k + 1) * n),
      means: means.slice(2 * k * c, 2 * (k + 1) * c),
      radii: radii.slice(k * c, (k + 1) * c),
      measures: /** @type {Record<Column, number>} */ (
        Object.fromEntries(columns.map((name, i) => [name, measures[k * m + i]]))
      ),
      triplets,
      capped: answer.capped[k],
    }));
  }
}
