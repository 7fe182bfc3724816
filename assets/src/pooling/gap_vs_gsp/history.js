// Steps of both training runs that the page has received, kept for scrubbing without new requests.

/** @import { Column, Frame, GapAnswer, Measures, Side } from "./types.js" */
import { Frames } from "../../kit/timeline/frames.js";

/** @type {Side[]} */
export const SIDES = ["gap", "gsp"];

/** @extends {Frames<GapAnswer, Frame>} */
export class History extends Frames {
  // Step from which GSP has its prototypes, [] before.
  get placedAt() {
    const step = this.frames.findIndex((frame) => frame.gsp.prototypes.length > 0);
    return step < 0 ? [] : [step];
  }

  /** @param {GapAnswer} answer */
  unpack(answer) {
    const gap = sideFrames(answer, "gap"),
      gsp = sideFrames(answer, "gsp");
    let before = this.frames.at(-1);
    return gap.map((_, k) => {
      const frame = { gap: gap[k], gsp: gsp[k] };
      for (const side of SIDES) {
        // Measurements are taken every ten steps and repeated in between.
        const { measures } = frame[side],
          kept = before?.[side].held;
        for (const name of answer.measures)
          frame[side].held[name] = Number.isFinite(measures[name])
            ? measures[name]
            : (kept?.[name] ?? NaN);
      }
      before = frame;
      return frame;
    });
  }
}

/**
 * @param {GapAnswer} answer
 * @param {Side} side
 */
function sideFrames(answer, side) {
  const of = (/** @type {Column} */ name) => answer[`${side}_${name}`],
    shape = (/** @type {Column} */ name) => answer.shapes[`${side}_${name}`];
  if (!answer.count) return [];
  const even = (/** @type {Column} */ name) => {
    const size = shape(name)
        .slice(1)
        .reduce((a, b) => a * b, 1),
      all = of(name);
    return (/** @type {number} */ k) => all.subarray(k * size, (k + 1) * size);
  };
  const [tokens, samples, weights, active, sizes, onShared, measures] = /** @type {Column[]} */ ([
    "tokens",
    "samples",
    "weights",
    "active",
    "sizes",
    "on_shared",
    "measures",
  ]).map((name) => even(name));
  const place = (/** @type {ArrayLike<number>} */ whole) =>
      Float32Array.from(whole, (v) => v * answer.scale),
    classes = shape("weights")[1],
    count = shape("weights")[2],
    bytes = shape("active")[2];
  let ring = 0,
    corner = 0;
  return Array.from({ length: answer.count }, (_, k) => {
    const placed = of("placed")[k],
      /** @type {Float32Array[]} */
      hulls = [];
    const prototypes = place(of("prototypes").subarray(2 * ring, 2 * (ring + placed)));
    ring += placed;
    for (const size of sizes(k)) {
      hulls.push(place(of("corners").subarray(2 * corner, 2 * (corner + size))));
      corner += size;
    }
    const w = weights(k),
      bits = active(k),
      row = measures(k);
    return {
      tokens: place(tokens(k)),
      samples: place(samples(k)),
      prototypes,
      hulls,
      classes,
      onShared: onShared(k),
      weight: (/** @type {number} */ c, /** @type {number} */ t) => w[c * count + t] / 65535,
      active: (/** @type {number} */ c, /** @type {number} */ t) =>
        Boolean(bits[c * bytes + (t >> 3)] & (1 << (t & 7))),
      measures: /** @type {Measures} */ (
        Object.fromEntries(answer.measures.map((name, i) => [name, row[i]]))
      ),
      held: /** @type {Measures} */ ({}),
    };
  });
}
