import assert from "node:assert/strict";
import { test } from "node:test";
import { History } from "../../../../assets/src/losses/charges/history.ts";

// Return steps first..first+count-1 of two points of two classes, with values that identify their
// step.
function answerOf(first, count, shown = first) {
  const steps = Array.from({ length: count }, (_, k) => first + k),
    each = (width) =>
      Float32Array.from(steps.flatMap((s) => Array.from({ length: width }, (_, i) => 100 * s + i)));
  return {
    first,
    shown,
    labels: Uint8Array.from([0, 1]),
    positions: each(4),
    forces: each(4),
    means: each(4),
    radii: each(2),
    measures: each(2),
    columns: ["loss", "active"],
    triplets: steps.map((s) => s + 5),
    capped: steps.map(() => 0),
    shapes: { radii: [count, 2] },
    density: new Uint8Array(1),
    reach: 10 + shown,
  };
}

test("steps that continue are kept, each with its own values", () => {
  const history = new History();
  history.add(answerOf(0, 3));
  history.add(answerOf(3, 2));
  assert.equal(history.last, 4);
  const frame = history.at(4);
  assert.deepEqual([...frame.positions], [400, 401, 402, 403]);
  assert.deepEqual([...frame.radii], [400, 401]);
  assert.deepEqual(frame.measures, { loss: 400, active: 401 });
  assert.equal(frame.triplets, 9);
});

test("steps of another time are not", () => {
  const history = new History();
  history.add(answerOf(0, 2));
  history.add(answerOf(5, 2));
  history.add(answerOf(0, 2));
  assert.equal(history.last, 1);
});

test("the portrait belongs to the step it was asked for", () => {
  const history = new History();
  history.add(answerOf(0, 3, 1));
  assert.equal(history.at(1).portrait.reach, 11);
  assert.equal(history.at(2).portrait, undefined);
});

test("what a hand tries is shown at its step and gone with the next answer", () => {
  const history = new History();
  history.add(answerOf(0, 3));
  history.preview({ ...answerOf(2, 1), positions: new Float32Array(4) });
  assert.deepEqual([...history.at(2).positions], [0, 0, 0, 0]);
  assert.equal(history.last, 2);
  history.add(answerOf(3, 1));
  assert.deepEqual([...history.at(2).positions], [200, 201, 202, 203]);
});

test("a point under the hand lies where it is held, and what is kept stays", () => {
  const history = new History();
  history.add(answerOf(0, 2));
  history.setPoint(1, [1, -7, 8]);
  assert.deepEqual([...history.at(1).positions], [100, 101, -7, 8]);
  history.drafted = null;
  assert.deepEqual([...history.at(1).positions], [100, 101, 102, 103]);
});

test("a changed future is forgotten, its first step in sight until the new one comes", () => {
  const history = new History();
  history.add(answerOf(0, 5));
  history.forget(2);
  assert.equal(history.last, 1);
  assert.deepEqual([...history.at(2).positions], [200, 201, 202, 203]);
  assert.equal(history.at(3), undefined);
  history.add({ ...answerOf(2, 1), positions: new Float32Array(4) });
  assert.deepEqual([...history.at(2).positions], [0, 0, 0, 0]);
});
