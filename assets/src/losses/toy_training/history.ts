// Steps that the page has received: curves of every step, frames of some; the others can be
// requested again.

import type { Column, Known, SideHistory, ToysAnswer } from "./types.ts";
import { pick } from "../../kit/timeline/frames.ts";

const COLUMNS: Column[] = [
  "loss",
  "active",
  "nonzero",
  "map_at_r",
  "recall",
  "mean_loss",
  "mean_active",
];
const WIDTH = COLUMNS.length;
const KNOWN = [
  ...["labels", "indices", "inputs", "baseline", "classes", "axes", "note", "samples", "notes"],
  ...["dim", "queries", "sheet", "columns", "side"],
] as const;

export class History {
  sparse = true;
  last = -1;
  perEpoch = 1;
  sides: SideHistory[] = [];
  data: Known | null = null;

  // Add an answer of the service or the recording, which has the same form. Curves that do not
  // continue the present ones belong to another state.
  add(answer: ToysAnswer) {
    this.perEpoch = answer.per_epoch;
    if (answer.labels) this.data = { queries: [], ...pick(answer, KNOWN) } as Known;
    const count = Object.keys(answer).filter((name) => name.startsWith("curve_")).length;
    for (let i = 0; i < count; i++) {
      const side = (this.sides[i] ??= {
          frames: new Map(),
          asked: new Map(),
          rows: [],
          scored: [],
        }),
        rows = answer[`curve_${i}`],
        [k, n, d] = answer.shapes[`frames_${i}`];
      for (let r = 0; WIDTH * r < rows.length; r++)
        if (answer.have + 1 + r === side.rows.length) {
          const row = rows.subarray(WIDTH * r, WIDTH * (r + 1));
          side.scored.push(Number.isNaN(row[3]) ? (side.scored.at(-1) ?? 0) : side.rows.length);
          side.rows.push(row);
        }
      for (let f = 0; f < k; f++) {
        const scale = answer[`scale_${i}`][f],
          points = new Float32Array(n * d),
          raw = answer[`frames_${i}`].subarray(f * n * d, (f + 1) * n * d);
        for (let j = 0; j < n * d; j++) points[j] = raw[j] * scale;
        side.frames.set(answer.steps[f], points);
        const near = answer[`neighbours_${i}`],
          looks = answer[`weights_${i}`];
        if (near) {
          const [, q, nearest] = answer.shapes[`neighbours_${i}`],
            positions = looks ? answer.shapes[`weights_${i}`][2] : 0;
          side.asked.set(answer.steps[f], {
            count: nearest,
            positions,
            neighbours: near.slice(f * q * nearest, (f + 1) * q * nearest),
            weights: looks?.slice(f * q * positions, (f + 1) * q * positions),
          });
        }
      }
    }
    this.last = Math.max(this.last, Math.min(...this.sides.map((side) => side.rows.length)) - 1);
  }

  has(step: number) {
    return this.sides.length > 0 && this.sides.every((side) => side.frames.has(step));
  }

  // Return the step itself if its frames are loaded, else the latest one before it.
  nearest(step: number) {
    for (let k = step; k >= 0; k--) if (this.has(k)) return k;
    return -1;
  }

  frame(i: number, step: number) {
    return this.sides[i]?.frames.get(step);
  }

  // Return a column of a side over the steps; MAP@R and R@1 repeat the last measurement.
  column(i: number, name: Column) {
    const { rows, scored } = this.sides[i] ?? { rows: [], scored: [] },
      at = COLUMNS.indexOf(name);
    return name === "map_at_r" || name === "recall"
      ? (k: number) => rows[scored[Math.min(k, rows.length - 1)]]?.[at] ?? NaN
      : (k: number) => rows[k]?.[at] ?? NaN;
  }

  row(i: number, step: number) {
    const scored = this.sides[i]?.scored ?? [];
    return {
      ...(Object.fromEntries(COLUMNS.map((name) => [name, this.column(i, name)(step)])) as Record<
        Column,
        number
      >),
      scored: scored[Math.min(step, scored.length - 1)] ?? 0,
    };
  }

  // Drop this step and all later ones, because the future changed.
  forget(step: number) {
    this.last = Math.min(this.last, step - 1);
    for (const side of this.sides) {
      for (const rows of [side.rows, side.scored]) rows.length = Math.min(rows.length, step);
      for (const kept of [side.frames, side.asked])
        for (const k of kept.keys()) if (k >= step) kept.delete(k);
    }
  }
}
