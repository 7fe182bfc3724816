import assert from "node:assert/strict";
import { test } from "node:test";
import { History } from "../../../../assets/src/losses/toy_training/history.ts";

const ROW = 7; // loss, active, nonzero, map_at_r, recall, mean_loss, mean_active

// Return rows of the steps after `have` of one side, and a frame for each of `steps`.
function answerOf(have, rows, steps) {
  return {
    per_epoch: 10,
    have,
    steps,
    curve_0: Float32Array.from(rows.flat()),
    frames_0: Int16Array.from(steps.flatMap((s) => [s, 2 * s])),
    scale_0: Float32Array.from(steps.map(() => 0.5)),
    shapes: { frames_0: [steps.length, 1, 2], curve_0: [rows.length, ROW] },
  };
}
const row = (loss, score = NaN) => [loss, 1, 0, score, score, 0, 0];

test("curves continue, frames are kept by their step", () => {
  const history = new History();
  history.add(answerOf(-1, [row(3, 0.4), row(2)], [0]));
  history.add(answerOf(1, [row(1, 0.6)], [2]));
  assert.equal(history.last, 2);
  assert.deepEqual([0, 1, 2].map(history.column(0, "loss")), [3, 2, 1]);
  assert.deepEqual([...history.frame(0, 2)], [1, 2]);
  assert.deepEqual([history.has(0), history.has(1), history.nearest(1)], [true, false, 0]);
});

test("MAP@R is that last measured, and says when", () => {
  const history = new History();
  history.add(answerOf(-1, [row(3, 0.5), row(2), row(1)], [0]));
  const score = history.column(0, "map_at_r");
  assert.deepEqual([0, 1, 2].map(score), [0.5, 0.5, 0.5]);
  assert.equal(history.row(0, 2).scored, 0);
});

test("curves that do not continue what is here are of another time", () => {
  const history = new History();
  history.add(answerOf(-1, [row(3, 0.5)], [0]));
  history.add(answerOf(5, [row(9)], []));
  assert.equal(history.last, 0);
});

test("a changed future is forgotten", () => {
  const history = new History();
  history.add(answerOf(-1, [row(3, 0.5), row(2), row(1)], [0, 1, 2]));
  history.forget(2);
  assert.deepEqual([history.last, history.has(1), history.has(2)], [1, true, false]);
  assert.ok(Number.isNaN(history.column(0, "loss")(2)));
  history.add(answerOf(1, [row(7)], [2]));
  assert.equal(history.column(0, "loss")(2), 7);
});
