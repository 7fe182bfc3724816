import assert from "node:assert/strict";
import { test } from "node:test";
import { numberPlace, resultants } from "../../../../assets/src/kit/plane/forces.ts";

test("arrows carry the numbers of the table beside them, also where the field is newer", () => {
  /** @type {string[]} */
  const written = [],
    ctx = new Proxy(
      { fillText: (/** @type {string} */ text) => written.push(text) },
      { get: (target, name) => target[name] ?? (() => undefined), set: () => true },
    ),
    scene = { anchor: [100, 100], positive: [200, 100], negative: [150, 300] },
    forces = (/** @type {number} */ size) => [
      [-size, 0],
      [size, 0],
      [0, -size],
    ];
  const at = (/** @type {number[]} */ place) => place;
  resultants(ctx, scene, { forces: forces(3.51) }, at, 400, {}, null, {
    told: { forces: forces(3.738) },
  });
  assert.deepEqual(written, ["3.74", "3.74", "3.74"]);
});

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
