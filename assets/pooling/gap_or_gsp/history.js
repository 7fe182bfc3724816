// The steps the page has seen, of both trainings, for scrubbing without asking again.

/** @import { Column, Frame, GapAnswer, Measures, Side } from "./types.js" */
/** @type {Side[]} */
export const SIDES = ["gap", "gsp"];

export class History {
  constructor() {
    /** @type {Frame[]} */
    this.frames = [];
  }

  // The step from which GSP has its prototypes, [] before.
  get placed() {
    const step = this.frames.findIndex((frame) => frame.gsp.prototypes.length > 0);
    return step < 0 ? [] : [step];
  }

  get last() {
    return this.frames.length - 1;
  }
  /** @param {number} step */
  at(step) {
    return this.frames[step];
  }

  // Steps that continue what is here; anything else is of another time.
  /** @param {GapAnswer} answer */
  add(answer) {
    if (answer.first !== this.frames.length) return;
    const gap = unpack(answer, "gap"),
      gsp = unpack(answer, "gsp");
    for (let k = 0; k < answer.count; k++) {
      const frame = { gap: gap[k], gsp: gsp[k] },
        before = this.frames.at(-1);
      for (const side of SIDES) {
        // What is measured every ten steps holds until it is measured again.
        const { measures } = frame[side],
          kept = before?.[side].held;
        for (const name of answer.measures)
          frame[side].held[name] = Number.isFinite(measures[name])
            ? measures[name]
            : (kept?.[name] ?? NaN);
      }
      this.frames.push(frame);
    }
  }

  /** @param {number} step */
  forget(step) {
    this.frames.length = Math.min(this.frames.length, step);
  }
}

/**
 * @param {GapAnswer} answer
 * @param {Side} side
 */
function unpack(answer, side) {
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
