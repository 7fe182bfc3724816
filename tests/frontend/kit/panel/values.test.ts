import assert from "node:assert/strict";
import { test } from "node:test";
import {
  clamp,
  defaultsOf,
  findPreset,
  settingOf,
  sliderRange,
  typedNumber,
  withinReach,
} from "../../../../assets/src/kit/panel/values.ts";

test("a logarithmic slider counts 0 to 1000 and returns the value of each position", () => {
  const { min, max, step, position, valueAt } = sliderRange(
    { low: 0.001, high: 1, log: true, step: 0.001 },
    0.05,
  );
  assert.deepEqual([min, max, step], [0, 1000, 1]);
  assert.ok(Math.abs(position(0.001)) < 1e-9 && Math.abs(position(1) - 1000) < 1e-9);
  for (const x of [0.001, 0.05, 0.2, 1]) assert.equal(valueAt(position(x)), x);
  assert.equal(valueAt(500), 0.0316); // the geometric mean, to four decimals
});

test("the range of a slider includes a value outside of the schema", () => {
  const schema = { low: 0, high: 2, step: 0.1 };
  assert.equal(sliderRange(schema, 3.5).max, 3.5);
  assert.equal(sliderRange(schema, -1).min, -1);
  const open = sliderRange(schema, null);
  assert.deepEqual([open.min, open.max, open.valueAt(1.5)], [0, 2, 1.5]);
});

test("typed text is a finite number or nothing", () => {
  assert.equal(typedNumber(" 0.25 "), 0.25);
  assert.equal(typedNumber("1e-3"), 0.001);
  for (const text of ["", "  ", "x", "Infinity", "NaN", "1,5"])
    assert.equal(typedNumber(text), null, text);
});

test("coordinates stay within reach, and what would be shown as 0 is 0", () => {
  assert.equal(clamp(7, 0, 5), 5);
  assert.equal(withinReach(-250, 100), -100);
  assert.equal(withinReach(4.9e-5, 100), 0);
  assert.equal(withinReach(6e-5, 100), 6e-5);
});

test("a hyper-parameter has its value, its default, or is infinite", () => {
  const m = { name: "m", symbol: "m", help: "", low: 0, high: 1, default: 0.2 },
    kind = { name: "kind", symbol: "k", help: "", options: ["a", "b"] };
  assert.equal(settingOf({ m: 0.5 }, m), 0.5);
  assert.equal(settingOf({}, m), 0.2);
  assert.equal(settingOf({ m: null }, m), null);
  assert.equal(settingOf({}, kind), null);
  assert.deepEqual(defaultsOf({ controls: [m, kind] }), { m: 0.2, kind: null });
});

test("the preset of a state is found by its content", () => {
  const offers = [{ state: { a: 1 } }, { state: { a: 2, b: [3] } }];
  assert.equal(findPreset(offers, { a: 2, b: [3] }), 1);
  assert.equal(findPreset(offers, { a: 2 }), null);
});
