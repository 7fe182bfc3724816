import assert from "node:assert/strict";
import { test } from "node:test";
import { firstAbove, group } from "../../../../assets/src/inspection/thresholds/pairs.ts";

// six pairs of ascending similarity; threshold k lies between bins k and k + 1
const pairs = {
  keep: 4,
  class_names: ["a", "b"],
  same_first: Uint32Array.of(1, 1, 3, 5, 7, 9),
  same_second: Uint32Array.of(2, 4, 4, 6, 8, 10),
  same_label: Uint32Array.of(0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1),
  same_value: Float32Array.of(0, 0.125, 0.25, 0.5, 0.625, 0.75),
  same_bin: Uint16Array.of(0, 0, 1, 1, 2, 3),
  same_opened: Uint8Array.of(3, 3, 3, 3, 1, 0),
};
const values = (...given) => group(pairs, "same", ...given).map(({ value }) => value);

test("the border of a threshold is behind all bins below it", () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((k) => firstAbove(pairs.same_bin, k)),
    [2, 4, 5, 6],
  );
});

test("pairs are nearest to the threshold first, or farthest first", () => {
  assert.deepEqual(values(1, true, true, 2), [0.625, 0.75]);
  assert.deepEqual(values(1, true, false, 2), [0.75, 0.625]);
  assert.deepEqual(values(2, false, true, 2), [0.625, 0.5]);
  assert.deepEqual(values(3, true, true, 2), []);
});

test("a sample is repeated only if there are not enough others", () => {
  assert.deepEqual(values(2, false, false, 3), [0, 0.25, 0.5]); // not 0.125, which repeats sample 1
  assert.deepEqual(values(2, false, false, 4), [0, 0.125, 0.25, 0.5]);
});

test("a pair has its samples, class names and pages", () => {
  assert.deepEqual(group(pairs, "same", 2, true, true, 1), [
    { kind: "same", samples: [9, 10], names: ["b", "b"], value: 0.75, pages: 0 },
  ]);
});
