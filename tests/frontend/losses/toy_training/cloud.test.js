import assert from "node:assert/strict";
import { test } from "node:test";
import { projector, windowOf } from "../../../../assets/src/losses/toy_training/cloud.ts";

test("the window holds every point, and trembles not", () => {
  const points = Float32Array.from([0, 0, 4, 2, -2, 1]),
    found = windowOf(points, 2, false);
  assert.deepEqual([...found.centre], [1, 1]);
  assert.ok(found.half >= 3 && found.half < 3.4);
  assert.equal(windowOf(points, 2, false, 3.5).half, 3.5); // somewhat wider than needed: unchanged
  assert.notEqual(windowOf(points, 2, false, 30).half, 30);
  assert.deepEqual(windowOf(points, 2, true), { centre: [0, 0], half: 1 });
});

test("in the plane the centre is the middle, and y points upwards", () => {
  const window = { centre: [1, 1], half: 3 },
    at = projector({ points: Float32Array.from([1, 1, 1, 4]), dim: 2, eye: [], window });
  assert.deepEqual(
    [at(0), at(1)],
    [
      [0, 0, 0],
      [0, 1, 0],
    ],
  );
});

test("in space the eye sees what lies towards it in front", () => {
  const scene = {
      points: Float32Array.from([1, 0, 0, -1, 0, 0, 0, 0, 1]),
      dim: 3,
      eye: [0, 0],
      window: { centre: [0, 0, 0], half: 1 },
    },
    at = projector(scene);
  const [front, back, up] = [at(0), at(1), at(2)];
  assert.ok(front[2] > 0.99 && back[2] < -0.99 && Math.abs(up[2]) < 1e-9);
  assert.ok(up[1] > 0 && Math.abs(up[0]) < 1e-9);
});
