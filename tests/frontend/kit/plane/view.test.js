import assert from "node:assert/strict";
import { test } from "node:test";
import { caught, fromPixels, toPixels } from "../../../../assets/src/kit/plane/view.ts";

const VIEW = [0.25, 0.1, 1.5],
  SIZE = 600;

test("the view's corners are those of the canvas, y upwards", () => {
  const at = toPixels(VIEW, SIZE);
  assert.deepEqual(at([0.25, 0.1]), [300, 300]);
  assert.deepEqual(at([1.75, 1.6]), [600, 0]);
  assert.deepEqual(at([-1.25, -1.4]), [0, 600]);
});

test("pixels and places are each other's inverse", () => {
  for (const place of [
    [0, 0],
    [-1, 1.5],
    [1.2, -0.7],
  ])
    fromPixels(
      VIEW,
      SIZE,
    )(toPixels(VIEW, SIZE)(place)).forEach((v, k) => assert.ok(Math.abs(v - place[k]) < 1e-12));
});

test("a press near a point takes hold of the nearest one, a press far from all of none", () => {
  /** @type {["a" | "n", number[]][]} */
  const places = [
    ["a", [100, 100]],
    ["n", [150, 100]],
  ];
  assert.equal(caught([130, 120], places), "n");
  assert.equal(caught([110, 100], places), "a");
  assert.equal(caught([150, 141], places), undefined);
});
