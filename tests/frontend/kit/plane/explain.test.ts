import assert from "node:assert/strict";
import { test } from "node:test";
import { clamping } from "../../../../assets/src/kit/plane/explain.tsx";

test("no triplet is called satisfied by a loss that is positive everywhere", () => {
  assert.match(clamping(false, null), /only triplets with E > 0/);
  assert.match(clamping(false, 5), /clipped to \[0, 5\]/);
  for (const clamp of [null, 2]) assert.match(clamping(true, clamp), /above 0 for every triplet/);
});
