import assert from "node:assert/strict";
import { test } from "node:test";
import { changedSpec, lawAt } from "../../../../assets/src/losses/charges/changes.ts";
import type { Change, Law, Spec } from "../../../../assets/src/losses/charges/types.ts";

const lawOf = (miner: string) => ({ loss: "ranking", hyper: {}, miner }) as unknown as Law;
const specOf = (changes: Change[]): Spec => ({
  start: "moons",
  classes: 2,
  per_class: 3,
  seed: 0,
  law: lawOf("all"),
  changes,
});

test("the law of a step is that of the last change, which may only move points", () => {
  const spec = specOf([
    { at: 3, law: lawOf("hard"), moved: [] },
    { at: 5, law: null, moved: [[0, 1, 1]] },
  ]);
  assert.deepEqual(
    [0, 2, 3, 9].map((k) => lawAt(spec, k).miner),
    ["all", "all", "hard", "hard"],
  );
});

test("a law at the first step is the initial one; a later law is a change, and drops those after", () => {
  const spec = specOf([{ at: 8, law: lawOf("hard"), moved: [] }]);
  assert.deepEqual(changedSpec(spec, 0, lawOf("easy")), { ...specOf([]), law: lawOf("easy") });
  assert.deepEqual(changedSpec(spec, 4, lawOf("easy")).changes, [
    { at: 4, law: lawOf("easy"), moved: [] },
  ]);
  assert.deepEqual(changedSpec(spec, 8, lawOf("all")).changes, []); // set back
  assert.equal(spec.changes.length, 1);
});

test("a point has one place per step, and the last points moved are kept", () => {
  const law = lawOf("all");
  let spec = changedSpec(specOf([]), 2, law, [4, 0, 0], 2);
  spec = changedSpec(spec, 2, law, [5, 1, 1], 2);
  spec = changedSpec(spec, 2, law, [4, 2, 2], 2);
  assert.deepEqual(spec.changes[0].moved, [
    [5, 1, 1],
    [4, 2, 2],
  ]);
  spec = changedSpec(spec, 2, law, [6, 3, 3], 2);
  assert.deepEqual(
    spec.changes[0].moved.map(([i]) => i),
    [4, 6],
  );
});
