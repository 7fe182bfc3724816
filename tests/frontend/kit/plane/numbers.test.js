import assert from "node:assert/strict";
import { test } from "node:test";
import { clamping, numberPlace } from "../../../../assets/src/kit/plane/numbers.ts";

const SIZE = 400;

test("a number stands before the tip of its arrow", () => {
  const place = numberPlace([100, 200], [180, 200], [1, 0], SIZE, [[100, 200]], []);
  assert.deepEqual(place, { left: 190, top: 200, align: "left" });
});

test("where the arrow leaves the frame, its number stands inside and beside it", () => {
  const { left, top, align } = numberPlace([200, 300], [200, 395], [0, 1], SIZE, [[200, 300]], []);
  assert.ok(top <= SIZE - 20, `${top} is on the numbers of the axis`);
  const [begin, end] = align === "left" ? [left, left + 32] : [left - 32, left];
  assert.ok(end < 200 - 6 || begin > 200 + 6, `${begin} to ${end} covers the arrow`);
});

test("a number does not lie on a point or on another number", () => {
  const points = [
    [100, 200],
    [180, 200],
  ];
  const { left, top } = numberPlace([180, 200], [105, 200], [-1, 0], SIZE, points, []);
  assert.ok(Math.hypot(left - 100, top - 200) > 18);
  const first = { left: 190, top: 200, align: /** @type {const} */ ("left") };
  const second = numberPlace([100, 200], [180, 200], [1, 0], SIZE, [[100, 200]], [first]);
  assert.notDeepEqual(second, first);
});

test("a number does not lie below the buttons of the plane", () => {
  const covered = { left: 260, top: 8, right: 392, bottom: 38 };
  const args = /** @type {const} */ ([[300, 200], [300, 40], [0, -1], SIZE, [[300, 200]], []]);
  assert.ok(numberPlace(...args).top < 38);
  assert.ok(numberPlace(...args, covered).top - 8 >= 38);
});

test("no triplet is called satisfied by a loss that is positive everywhere", () => {
  assert.match(clamping(false, null), /only triplets with E > 0/);
  assert.match(clamping(false, 5), /clipped to \[0, 5\]/);
  for (const clamp of [null, 2]) assert.match(clamping(true, clamp), /above 0 for every triplet/);
});
