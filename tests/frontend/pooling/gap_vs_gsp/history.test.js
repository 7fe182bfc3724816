import assert from "node:assert/strict";
import { test } from "node:test";
import { newHistory, placedAt } from "../../../../assets/src/pooling/gap_vs_gsp/history.ts";

// Return two steps of two classes and nine tokens; only the second has prototypes and a new
// measurement of MAP@R.
function answerOf(first) {
  const side = {
    tokens: Int16Array.from({ length: 2 * 18 }, (_, i) => i),
    samples: Int16Array.from([1, 2, 3, 4, 5, 6, 7, 8]),
    weights: Uint16Array.from({ length: 2 * 18 }, (_, i) => (i === 18 + 9 + 8 ? 65535 : 0)),
    active: Uint8Array.from([0b10, 0, 0, 1, 0, 0, 0, 1]), // two bytes per class
    sizes: Uint8Array.from([1, 0, 2, 1]),
    on_shared: Float32Array.from([0.1, 0.2, 0.3, 0.4]),
    measures: Float32Array.from([1, 0.5, 2, NaN]),
    prototypes: Int16Array.from([10, 20]),
    placed: Uint16Array.from([0, 1]),
    corners: Int16Array.from([1, 1, 2, 2, 3, 3, 4, 4]),
  };
  const shapes = { weights: [2, 2, 9], active: [2, 2, 2], tokens: [2, 9, 2], samples: [2, 2, 2] };
  Object.assign(shapes, { sizes: [2, 2], on_shared: [2, 2], measures: [2, 2] });
  return {
    first,
    count: 2,
    scale: 0.5,
    measures: ["loss", "map_at_r"],
    ...Object.fromEntries(
      ["gap", "gsp"].flatMap((s) => Object.entries(side).map(([name, v]) => [`${s}_${name}`, v])),
    ),
    shapes: Object.fromEntries(
      ["gap", "gsp"].flatMap((s) => Object.entries(shapes).map(([name, v]) => [`${s}_${name}`, v])),
    ),
  };
}

test("both training runs are taken apart step by step", () => {
  const history = newHistory();
  history.add(answerOf(0));
  assert.equal(history.last, 1);
  const { gap } = history.at(1);
  assert.deepEqual([...gap.tokens.slice(0, 2)], [9, 9.5]);
  assert.deepEqual([...gap.samples], [2.5, 3, 3.5, 4]);
  assert.deepEqual([...gap.prototypes], [5, 10]);
  assert.equal(history.at(0).gap.prototypes.length, 0);
  assert.deepEqual(
    gap.hulls.map((hull) => [...hull]),
    [
      [1, 1, 1.5, 1.5],
      [2, 2],
    ],
  );
  assert.equal(gap.weight(1, 8), 1);
  assert.equal(gap.weight(1, 7), 0);
});

test("each step has the prototypes placed in it", () => {
  const answer = answerOf(0),
    history = newHistory();
  answer.gsp_placed = Uint16Array.from([1, 1]);
  answer.gsp_prototypes = Int16Array.from([10, 20, 30, 40]);
  history.add(answer);
  assert.deepEqual([...history.at(1).gsp.prototypes], [15, 20]);
});

test("tokens that count are bits, the lowest first", () => {
  const history = newHistory();
  history.add(answerOf(0));
  const { gsp } = history.at(0);
  assert.deepEqual([gsp.active(0, 1), gsp.active(0, 0), gsp.active(1, 8)], [true, false, true]);
});

test("what is measured now and then holds until it is measured again", () => {
  const history = newHistory();
  history.add(answerOf(0));
  assert.equal(history.at(1).gap.held.map_at_r, 0.5);
  assert.equal(history.at(1).gap.held.loss, 2);
  assert.ok(Number.isNaN(history.at(1).gap.measures.map_at_r));
});

test("the prototypes are placed where they are first there; a changed future is forgotten", () => {
  const history = newHistory();
  assert.deepEqual(placedAt(history), []);
  history.add(answerOf(0));
  history.add(answerOf(5)); // of an earlier state
  assert.deepEqual([placedAt(history), history.last], [[1], 1]);
  history.forget(1);
  assert.deepEqual([placedAt(history), history.last], [[], 0]);
});
