import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "../../../../assets/src/kit/figure/hit.ts";

test("the nearest point within reach is hit, of equal ones the last", () => {
  const points = [
    ["far", [100, 0]],
    ["near", [3, 4]],
    ["same", [4, 3]],
  ] as const;
  assert.equal(nearest([0, 0], points, 10), "same");
  assert.equal(nearest([0, 0], points, 4.9), undefined);
  assert.equal(nearest([96, 0], points, 10), "far");
});
