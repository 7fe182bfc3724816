import assert from "node:assert/strict";
import { test } from "node:test";
import { show, stateOf, tidy } from "../../../assets/src/kit/dom.ts";
import { niceStep, rampColour, signedColour } from "../../../assets/src/kit/colours.ts";
import { pace } from "../../../assets/src/kit/screen.ts";
import { brief } from "../../../assets/src/kit/plot.ts";

test("a step is 1, 2 or 5 times a power of ten, and no more than so many fit", () => {
  for (let span = 1e-6; span < 1e7; span *= 1.37)
    for (const most of [3, 6, 9]) {
      const step = niceStep(span, most),
        digit = step / 10 ** Math.floor(Math.log10(step) + 1e-9);
      assert.ok(
        [1, 2, 5].some((d) => Math.abs(digit - d) < 1e-6),
        `${step}`,
      );
      assert.ok(span / step <= most + 1e-9 && span / step > most / 2.6, `${span} / ${step}`);
    }
});

test("a ramp goes from its first colour to its last, and stays there beyond", () => {
  for (const theme of ["light", "dark"]) {
    const sum = (t) => rampColour(t, theme).reduce((a, b) => a + b);
    const way = Math.sign(sum(1) - sum(0));
    assert.notEqual(way, 0);
    for (let t = 0; t < 1; t += 0.05)
      assert.ok(way * (sum(t + 0.05) - sum(t)) > 0, `${theme} at ${t}`);
    assert.deepEqual(rampColour(-3, theme), rampColour(0, theme));
    assert.deepEqual(rampColour(7, theme), rampColour(1, theme));
    const [r0, , b0] = signedColour(-1, theme),
      [r1, , b1] = signedColour(1, theme);
    assert.ok(b0 > r0 && r1 > b1, "negative is blue, positive vermillion");
  }
});

test("numbers are shown as they are read", () => {
  assert.deepEqual([0.12345, -2, 1e-7, null].map(tidy), ["0.1235", "-2", "0", ""]);
  assert.deepEqual([0.5, 1234.5, null].map(show), ["0.500", "1.23e+3", "∞"]);
  assert.deepEqual([0, 0.00012, 12345, 0.5, 3.14159, NaN].map(brief), [
    "0",
    "1.2e-4",
    "1.2e+4",
    "0.5",
    "3.14",
    "–",
  ]);
});

test("a triplet that feels nothing is satisfied below 0, clamped above", () => {
  assert.equal(stateOf({ hit: true, raw: 0.2 }), "active");
  assert.equal(stateOf({ hit: false, raw: -0.1 }), "satisfied");
  assert.equal(stateOf({ hit: false, raw: 3 }), "clamped");
  assert.equal(stateOf({ hit: false, raw: null }), "clamped");
});

test("the pace is that of the last laps, and needs a few of them", () => {
  assert.equal(pace([0, 100, 200, 300]), null);
  assert.equal(pace([0, 100, 200, 300, 400]), "10");
});
