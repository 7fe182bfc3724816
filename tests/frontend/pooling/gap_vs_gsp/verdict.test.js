import assert from "node:assert/strict";
import { test } from "node:test";
import { verdict } from "../../../../assets/src/pooling/gap_vs_gsp/verdict.ts";

const side = (onShared, held, placed = 1) => ({
  classes: onShared.length,
  onShared: Float32Array.from(onShared),
  prototypes: new Float32Array(2 * placed),
  held: { on_shared: onShared.reduce((a, b) => a + b) / onShared.length, map_at_r: held },
});
const average = () => side([0.5, 0.48], 0.541, 0);
const first = { gap: side([0.5, 0.5], 0.37, 0), gsp: side([0.5, 0.5], 0.37, 0) };
const told = (gsp, training = false) => verdict({ gap: average(), gsp }, first, 86, training);

test("every class below half of the average: learned, with its range and baselines", () => {
  assert.equal(
    told(side([0.1, 0.2], 1)),
    "Yes: GSP leaves 15.0 % of its weight on the shared tokens (10.0 % to 20.0 % by class), GAP leaves 49.0 %. MAP@R: GSP 100.0 %, GAP 54.1 %, untrained network 37.0 %.",
  );
});

test("one class that uses them more takes the yes away", () => {
  assert.match(told(side([0.1, 0.3], 1)), /^In part: GSP leaves 20.0 %/);
  assert.match(told(side([0.1, 0.49], 1)), /^No: /);
});

test("while it trains the answer is not yet, or yes", () => {
  assert.match(told(side([0.1, 0.3], 1), true), /^Not yet \(step 86\): GSP/);
  assert.match(told(side([0.1, 0.49], 1), true), /^Not yet \(step 86\): GSP/);
  assert.match(told(side([0.1, 0.2], 1), true), /^Yes: /);
});

test("before there are prototypes nothing is claimed", () => {
  assert.match(told(side([0.1, 0.1], NaN, 0)), /^Not yet \(step 86; .*MAP@R: GSP –, GAP 54.1 %/);
});
