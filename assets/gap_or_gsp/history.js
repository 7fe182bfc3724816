// The steps the page has seen, of both trainings, for scrubbing without asking again.

export const SIDES = ["gap", "gsp"];

export class History {
  constructor() {
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
  at(step) {
    return this.frames[step];
  }

  // Steps that continue what is here; anything else is of another time.
  add(answer) {
    if (answer.first !== this.frames.length) return;
    const sides = Object.fromEntries(SIDES.map((side) => [side, unpack(answer, side)]));
    for (let k = 0; k < answer.count; k++) {
      const frame = Object.fromEntries(SIDES.map((side) => [side, sides[side][k]])),
        before = this.frames.at(-1);
      for (const side of SIDES) {
        // What is measured every ten steps holds until it is measured again.
        const { measures } = frame[side],
          kept = before?.[side].held;
        frame[side].held = Object.fromEntries(
          answer.measures.map((name) => [
            name,
            Number.isFinite(measures[name]) ? measures[name] : (kept?.[name] ?? NaN),
          ]),
        );
      }
      this.frames.push(frame);
    }
  }

  forget(step) {
    this.frames.length = Math.min(this.frames.length, step);
  }
}

function unpack(answer, side) {
  const of = (name) => answer[`${side}_${name}`],
    shape = (name) => answer.shapes[`${side}_${name}`];
  if (!answer.count) return [];
  const even = (name) => {
    const size = shape(name)
        .slice(1)
        .reduce((a, b) => a * b, 1),
      all = of(name);
    return (k) => all.subarray(k * size, (k + 1) * size);
  };
  const [tokens, samples, weights, active, sizes, onShared, measures] = [
    "tokens",
    "samples",
    "weights",
    "active",
    "sizes",
    "on_shared",
    "measures",
  ].map(even);
  const place = (whole) => Float32Array.from(whole, (v) => v * answer.scale),
    classes = shape("weights")[1],
    count = shape("weights")[2],
    bytes = shape("active")[2];
  let ring = 0,
    corner = 0;
  return Array.from({ length: answer.count }, (_, k) => {
    const placed = of("placed")[k],
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
      weight: (c, t) => w[c * count + t] / 65535,
      active: (c, t) => Boolean(bits[c * bytes + (t >> 3)] & (1 << (t & 7))),
      measures: Object.fromEntries(answer.measures.map((name, i) => [name, row[i]])),
    };
  });
}
