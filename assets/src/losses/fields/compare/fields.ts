// Fields of an answer: one for each loss, and one for the difference of two.
import type { CompareAnswer, Comparison } from "./types.ts";
import type { Painted } from "../../../kit/plane/types.ts";

const NONE = [
  [0, 0],
  [0, 0],
  [0, 0],
];
const common = ({ id, n, view, scale }: CompareAnswer) => ({ id, n, view, scale, radius: null });

/** Return the field of loss k. */
export const fieldOf = (answer: CompareAnswer, { arrows }: Comparison, k: number) =>
  ({
    ...common(answer),
    ...answer.panels[k],
    signed: answer.signed,
    shade: answer[`shade${k}`],
    active: answer[`active${k}`],
    arrows: arrows ? answer[`arrows${k}`] : null,
    corners: answer[`corners${k}`],
  }) as unknown as Painted;

/** Return the field of the difference, about zero and active everywhere. */
export const differenceOf = (answer: CompareAnswer, { arrows }: Comparison) =>
  ({
    ...common(answer),
    ...answer.panels[0],
    forces: NONE,
    outer: [],
    inner: [],
    corners: new Uint16Array(0),
    signed: true,
    shade: answer.difference,
    active: new Uint8Array(answer.active0.length).fill(255),
    arrows: arrows ? answer.apart : null,
  }) as unknown as Painted;
