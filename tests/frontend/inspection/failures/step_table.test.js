import assert from "node:assert/strict";
import { test } from "node:test";
import { sortLosses } from "../../../../assets/src/inspection/failures/step_table.tsx";

/** @type {[string, string][]} */
const LOSSES = [
  ["ranking", "Ranking"],
  ["ratio", "Ratio"],
  ["angular", "Angular"],
  ["facenet", "FaceNet"],
];
/**
 * @param {number} right
 * @param {number} ap
 * @param {number | null} force
 */
const step = (right, ap, force, active = true) => ({
  right,
  wrong: 1,
  ap,
  force,
  active,
  satisfied: false,
  moved: 0,
});
const STEPS = {
  ranking: step(220, 0, 1.5),
  ratio: step(72, 0.125, null),
  angular: step(1115, 0, 12),
  facenet: step(220, 0, 9, false),
};

test("columns are sorted as numbers, and equal ones keep their order", () => {
  assert.deepEqual(sortLosses(LOSSES, STEPS, { key: "right", way: 1 }), [
    "ratio",
    "ranking",
    "facenet",
    "angular",
  ]);
  assert.deepEqual(sortLosses(LOSSES, STEPS, { key: "ap", way: -1 })[0], "ratio");
  assert.deepEqual(sortLosses(LOSSES, STEPS, { key: "right", way: -1 })[0], "angular");
});

test("an infinite force is the largest, none the smallest, a loss not told yet the last", () => {
  assert.deepEqual(sortLosses(LOSSES, STEPS, { key: "force", way: -1 }), [
    "ratio",
    "angular",
    "ranking",
    "facenet",
  ]);
  const { ranking, ...rest } = STEPS;
  for (const way of /** @type {const} */ ([1, -1]))
    assert.equal(sortLosses(LOSSES, rest, { key: "right", way }).at(-1), "ranking");
});

test("names are sorted as words, and without a column nothing is", () => {
  const names = sortLosses(LOSSES, STEPS, { key: "loss", way: 1 });
  assert.deepEqual(names, ["angular", "facenet", "ranking", "ratio"]);
  assert.deepEqual(
    sortLosses(LOSSES, STEPS, null),
    LOSSES.map(([name]) => name),
  );
});
