// What the page has seen of the trainings: curves of every step, frames of some; the rest can be asked for again.

const WIDTH = 6; // loss, active, nonzero, MAP@R, mean loss, mean active

export class History {
  constructor() { Object.assign(this, { last: -1, sides: [], data: null, perEpoch: 1 }); }

  // An answer of the service, or the recording, which is one. Curves that do not continue what is here are of another time.
  add(answer) {
    this.perEpoch = answer.per_epoch;
    if (answer.labels) {
      const { labels, indices, inputs, classes, axes, note, samples, notes } = answer;
      this.data = { labels, indices, inputs, classes, axes, note, samples, notes };
    }
    const count = Object.keys(answer).filter((name) => name.startsWith("curve_")).length;
    for (let i = 0; i < count; i++) {
      const side = (this.sides[i] ??= { frames: new Map(), rows: [] }), rows = answer[`curve_${i}`], [k, n, d] = answer.shapes[`frames_${i}`];
      for (let r = 0; WIDTH * r < rows.length; r++) if (answer.have + 1 + r === side.rows.length) side.rows.push(rows.subarray(WIDTH * r, WIDTH * (r + 1)));
      for (let f = 0; f < k; f++) {
        const scale = answer[`scale_${i}`][f], points = new Float32Array(n * d), raw = answer[`frames_${i}`].subarray(f * n * d, (f + 1) * n * d);
        for (let j = 0; j < n * d; j++) points[j] = raw[j] * scale;
        side.frames.set(answer.steps[f], points);
      }
    }
    this.last = Math.max(this.last, Math.min(...this.sides.map((side) => side.rows.length)) - 1);
  }

  has(step) { return this.sides.length > 0 && this.sides.every((side) => side.frames.has(step)); }

  // The step itself where its frames are here, else the latest before it.
  nearest(step) {
    for (let k = step; k >= 0; k--) if (this.has(k)) return k;
    return -1;
  }

  frame(i, step) { return this.sides[i]?.frames.get(step); }

  // loss, active and non-zero share of a step; MAP@R as last measured.
  row(i, step) {
    const rows = this.sides[i]?.rows ?? [], [loss = NaN, active = NaN, nonzero = NaN, , mean_loss = NaN, mean_active = NaN] = rows[step] ?? [];
    let k = Math.min(step, rows.length - 1);
    while (k > 0 && Number.isNaN(rows[k][3])) k--;
    return { loss, active, nonzero, mean_loss, mean_active, map_at_r: rows[k]?.[3] ?? NaN, scored: k };
  }

  // Steps after `step` are of a future that was changed.
  forget(step) {
    this.last = Math.min(this.last, step);
    for (const side of this.sides) {
      side.rows.length = Math.min(side.rows.length, step + 1);
      for (const k of side.frames.keys()) if (k > step) side.frames.delete(k);
    }
  }
}
