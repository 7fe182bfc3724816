import assert from "node:assert/strict";
import { test } from "node:test";
import {
  STEPS,
  codeAt,
  join,
  planeOf,
  split,
} from "../../../../assets/src/pooling/transport/draw.ts";

test("a code is red and blue, and every code lies where it is found again", () => {
  for (let red = 0; red <= STEPS; red += 7)
    for (let blue = 0; red + blue <= STEPS; blue += 9) {
      const code = join(red, blue);
      assert.deepEqual(split(code), [red, blue]);
      assert.equal(codeAt(planeOf(code)), code);
    }
});

test("beyond the triangle is the nearest edge of it", () => {
  for (const place of [
    [-1, -1],
    [2, -1],
    [0.5, 3],
    [0, 1],
    [1, 1],
  ]) {
    const [red, blue] = split(codeAt(place));
    assert.ok(red >= 0 && blue >= 0 && red + blue <= STEPS);
  }
  assert.deepEqual(split(codeAt([-1, -1])), [STEPS, 0]);
  assert.deepEqual(split(codeAt([2, -1])), [0, STEPS]);
  assert.deepEqual(split(codeAt([0.5, 3])), [0, 0]);
});
