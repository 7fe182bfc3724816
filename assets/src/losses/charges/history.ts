// Steps that the page has received, kept for scrubbing without new requests.

import type { ChargesAnswer, Column, Frame, Moved } from "./types.ts";
import type { Steps } from "../../kit/timeline/types.ts";
import { Frames, pick } from "../../kit/timeline/frames.ts";

const PORTRAIT = [
  ...["density", "corners", "reach", "outer", "inner"],
  ...["violated", "valid", "third_edge", "norms"],
] as const;

export class History implements Steps<ChargesAnswer> {
  drafted: { step: number; frame: Frame } | null = null;
  private readonly kept = new Frames(unpack);

  get last() {
    return this.kept.last;
  }
  has(step: number) {
    return this.kept.has(step);
  }
  at(step: number): Frame {
    return this.drafted?.step === step ? this.drafted.frame : this.kept.at(step);
  }

  add(answer: ChargesAnswer) {
    this.drafted = null;
    this.kept.add(answer);
    const shown = this.kept.at(answer.shown);
    if (shown) shown.portrait = pick(answer, PORTRAIT);
  }

  preview(answer: ChargesAnswer) {
    const frame = unpack(answer)[answer.shown - answer.first];
    if (!frame) return;
    frame.portrait = pick(answer, PORTRAIT);
    this.drafted = { step: answer.shown, frame };
  }

  // Show a dragged point at once, before its forces are known.
  setPoint(step: number, [index, x, y]: Moved) {
    const frame = this.at(step);
    if (!frame) return;
    const positions = frame.positions.slice();
    positions.set([x, y], 2 * index);
    this.drafted = { step, frame: { ...frame, positions } };
  }

  // Keep showing the first dropped step until its replacement arrives.
  forget(step: number) {
    const seen = this.at(step);
    this.kept.forget(step);
    this.drafted = seen ? { step, frame: seen } : null;
  }
}

function unpack(answer: ChargesAnswer): Frame[] {
  const { positions, forces, means, radii, measures, columns, labels } = answer,
    n = 2 * labels.length,
    c = answer.shapes.radii[1],
    m = columns.length;
  return answer.triplets.map((triplets, k) => ({
    positions: positions.slice(k * n, (k + 1) * n),
    forces: forces.slice(k * n, (k + 1) * n),
    means: means.slice(2 * k * c, 2 * (k + 1) * c),
    radii: radii.slice(k * c, (k + 1) * c),
    measures: Object.fromEntries(columns.map((name, i) => [name, measures[k * m + i]])) as Record<
      Column,
      number
    >,
    triplets,
    capped: answer.capped[k],
  }));
}
