import assert from "node:assert/strict";
import { test } from "node:test";
import { Orbit } from "../../../../../assets/src/losses/fields/compare/orbit.ts";

test("the negative that goes round stops where it is when a hand comes near", () => {
  let rests = 0;
  const app = {
      state: { anchor: [0, 0], positive: [1, 0], negative: [0.123456, 0.5] },
      move() {},
      rest: () => rests++,
    },
    orbit = new Orbit(app);
  orbit.halt();
  assert.equal(rests, 0);
  orbit.home = [0.35, 0.75];
  orbit.halt();
  assert.deepEqual(app.state.negative, [0.1235, 0.5]);
  assert.equal(orbit.home, null);
  assert.equal(rests, 1);
});
