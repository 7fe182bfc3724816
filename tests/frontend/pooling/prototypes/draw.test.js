import assert from "node:assert/strict";
import { test } from "node:test";
import { boxView } from "../../../../assets/src/pooling/prototypes/draw.ts";
import { barAt } from "../../../../assets/src/pooling/prototypes/details.ts";

test("the box fills the square, y upwards, and back", () => {
  const { scale, to, from } = boxView([-2, 1, 4], 200);
  assert.equal(scale, 50);
  assert.deepEqual(to([-2, 1]), [0, 200]);
  assert.deepEqual(to([2, 5]), [200, 0]);
  assert.deepEqual(from(to([0.5, 3])), [0.5, 3]);
});

test("each bar of the histogram is found under its pixels", () => {
  const width = 236; // 200 px for the bars
  assert.deepEqual(
    [33, 34, 53, 54, 233, 235].map((px) => barAt(px, width, 10)),
    [-1, 0, 0, 1, 9, -1],
  );
});
