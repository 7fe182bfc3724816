import assert from "node:assert/strict";
import { test } from "node:test";
import {
  closest,
  density,
  equalErrors,
  rateAt,
  worstClasses,
} from "../../../../assets/src/inspection/thresholds/curves.ts";
import { scale } from "../../../../assets/src/inspection/thresholds/figures.ts";

const curves = {
  sides: { unseen: { same: 10, different: 100 } },
  thresholds: Float32Array.of(0, 0.25, 0.5, 0.75, 1),
  even: Uint16Array.of(0, 1, 2, 3, 4),
  unseen_same: Uint32Array.of(10, 9, 8, 6, 0),
  unseen_different: Uint32Array.of(100, 40, 10, 1, 0),
  unseen_within: Float32Array.from({ length: 20 }, (_, i) => i),
  class_thresholds: [0, 0.5, 1],
  // two classes, and the median
  unseen_fmr: Uint16Array.of(65535, 6553, 0, 65535, 13107, 0, 65535, 9000, 0),
  shapes: { unseen_fmr: [3, 3] },
};

test("the handle goes to the nearest threshold", () => {
  assert.equal(closest(curves.thresholds, -3), 0);
  assert.equal(closest(curves.thresholds, 0.37), 1);
  assert.equal(closest(curves.thresholds, 0.38), 2);
  assert.equal(closest(curves.thresholds, 9), 4);
});

test("rates count accepted pairs of different classes and rejected pairs of the same class", () => {
  assert.deepEqual(rateAt(curves, "unseen", "fmr", 2), {
    value: 0.1,
    count: 10,
    of: 100,
    within: [2, 7],
  });
  assert.deepEqual(rateAt(curves, "unseen", "fnmr", 3), {
    value: 0.4,
    count: 4,
    of: 10,
    within: [13, 18],
  });
  const unknown = { ...curves, unseen_within: new Float32Array(20).fill(NaN) };
  assert.equal(rateAt(unknown, "unseen", "fmr", 2).within, null);
});

test("both rates are closest at the threshold of equal errors", () => {
  assert.equal(equalErrors(curves), 0.5); // 10 % and 20 %
});

test("the bars hold all pairs", () => {
  assert.deepEqual([...density(curves, "unseen", "same")], [1]); // four steps are one bar
});

test("a place of the figure and its threshold are each other's inverse", () => {
  const { x, t } = scale(curves, 800);
  for (const value of [0, 0.3, 1]) assert.ok(Math.abs(t(x(value)) - value) < 1e-9);
  assert.ok(x(0) >= 0 && x(1) <= 800);
});

test("the classes with the highest rates come first, without the median", () => {
  const found = worstClasses(curves, "unseen", "fmr", 0.45, 5);
  assert.deepEqual(
    found.map(({ row }) => row),
    [1, 0],
  );
  assert.ok(Math.abs(found[0].value - 0.2) < 1e-4);
});
