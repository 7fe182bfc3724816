import assert from "node:assert/strict";
import { test } from "node:test";
import { PointIndex, nearest } from "../../../../assets/src/kit/figure/hit.ts";

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

test("the index finds what a plain search finds", () => {
  let state = 7; // a small generator of its own, so that a failure repeats
  const next = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const xs = Float32Array.from({ length: 500 }, next),
    ys = Float32Array.from({ length: 500 }, next),
    index = new PointIndex(xs, ys),
    points = [...xs].map((x, i) => [i, [x, ys[i]]] as const);
  for (let k = 0; k < 100; k++) {
    const at = [next(), next()];
    assert.equal(index.nearest(at[0], at[1], 0.03), nearest(at, points, 0.03));
  }
});
