import assert from "node:assert/strict";
import { test } from "node:test";
import { resultants } from "../../../../assets/src/kit/plane/forces.ts";

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
