import assert from "node:assert/strict";
import { test } from "node:test";
import { orbitOf } from "../../../../assets/src/kit/plane/orbit.ts";

test("the negative circles the middle of the pair and ends where it began", () => {
  const points = { anchor: [0, 0], positive: [1, 0], negative: [0.5, 0.8] },
    at = orbitOf(points);
  for (const share of [0.1, 0.37, 0.9]) {
    const [x, y] = at(share);
    assert.ok(Math.abs(Math.hypot(x - 0.5, y) - 0.8) < 1e-12);
  }
  const [x, y] = at(0.5);
  assert.ok(Math.abs(x - 0.5) < 1e-12 && Math.abs(y + 0.8) < 1e-12, "half a turn is opposite");
  assert.deepEqual([at(0), at(1)], [points.negative, points.negative]);
});
