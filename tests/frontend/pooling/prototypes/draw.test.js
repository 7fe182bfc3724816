import assert from "node:assert/strict";
import { test } from "node:test";
import { scaleOf } from "../../../../assets/src/pooling/prototypes/draw.ts";

test("the box fills the square, y upwards, and back", () => {
  const { k, at, from } = scaleOf([-2, 1, 4], 200);
  assert.equal(k, 50);
  assert.deepEqual(at(-2, 1), [0, 200]);
  assert.deepEqual(at(2, 5), [200, 0]);
  assert.deepEqual(from(...at(0.5, 3)), [0.5, 3]);
});
