// Steps of both training runs that the page has received, kept for scrubbing without new requests.

import type { Column, Frame, GapAnswer, Measures, Side } from "./types.ts";
import { Frames } from "../../kit/timeline/frames.ts";

export const SIDES: Side[] = ["gap", "gsp"];

export type History = Frames<GapAnswer, Frame>;
export const newHistory = () => new Frames(unpack);

// Return the step from which GSP has its prototypes, [] before.
export function placedAt({ frames }: History) {
  const step = frames.findIndex((frame) => frame.gsp.prototypes.length > 0);
  return step < 0 ? [] : [step];
}

function unpack(answer: GapAnswer, before?: Frame): Frame[] {
  const gap = sideFrames(answer, "gap"),
    gsp = sideFrames(answer, "gsp");
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

function sideFrames(answer: GapAnswer, side: Side) {
  const of = (name: Column) => answer[`${side}_${name}`],
    shape = (name: Column) => answer.shapes[`${side}_${name}`];
  if (!answer.count) return [];
  const even = (name: Column) => {
    const size = shape(name)
        .slice(1)
        .reduce((a, b) => a * b, 1),
      all = of(name);
    return (k: number) => all.subarray(k * size, (k + 1) * size);
  };
  const [tokens, samples, weights, active, sizes, onShared, measures] = (
    ["tokens", "samples", "weights", "active", "sizes", "on_shared", "measures"] as Column[]
  ).map((name) => even(name));
  const place = (whole: ArrayLike<number>) => Float32Array.from(whole, (v) => v * answer.scale),
    classes = shape("weights")[1],
    count = shape("weights")[2],
    bytes = shape("active")[2];
  let ring = 0,
    corner = 0;
  return Array.from({ length: answer.count }, (_, k) => {
    const placed = of("placed")[k],
      hulls: Float32Array[] = [];
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
      weight: (c: number, t: number) => w[c * count + t] / 65535,
      active: (c: number, t: number) => Boolean(bits[c * bytes + (t >> 3)] & (1 << (t & 7))),
      measures: Object.fromEntries(answer.measures.map((name, i) => [name, row[i]])) as Measures,
      held: {} as Measures,
    };
  });
}
