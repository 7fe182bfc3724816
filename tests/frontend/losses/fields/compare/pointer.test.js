import assert from "node:assert/strict";
import { test } from "node:test";
import { Hand } from "../../../../../assets/src/losses/fields/compare/pointer.ts";

test("the negative that goes round stops where it is when a hand comes near", () => {
  let rests = 0;
  const app = {
      state: { negative: [0.123456, 0.5] },
      planes: () => [],
      rest: () => rests++,
    },
    hand = new Hand(app);
  hand.halt();
  assert.equal(rests, 0);
  hand.orbiting = [0.35, 0.75];
  hand.halt();
  assert.deepEqual(app.state.negative, [0.1235, 0.5]);
  assert.equal(hand.orbiting, null);
  assert.equal(rests, 1);
});
