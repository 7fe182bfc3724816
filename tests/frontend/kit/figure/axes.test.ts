import assert from "node:assert/strict";
import { test } from "node:test";
import type { Axis } from "../../../../assets/src/kit/figure/axes.ts";
import { marked, position, ticks, valueAt } from "../../../../assets/src/kit/figure/axes.ts";
import { chart, plane } from "../../../../assets/src/kit/figure/view.ts";

const AXES: Axis[] = [
  { low: -2, high: 3 },
  { low: 0.1, high: 450, scale: "log" },
  { low: 0, high: 0.8, scale: "sqrt" },
];

test("a position and its value are each other's inverse on every scale", () => {
  for (const axis of AXES) {
    const x = position(axis, 40, 240);
    assert.ok(Math.abs(x(axis.low) - 40) < 1e-9 && Math.abs(x(axis.high) - 240) < 1e-9);
    for (const share of [0, 0.2, 0.7, 1]) {
      const value = valueAt(axis, share);
      assert.ok(Math.abs(x(value) - (40 + 200 * share)) < 1e-9, `${axis.scale} at ${share}`);
    }
    assert.ok(Math.abs(valueAt(axis, -1) - axis.low) < 1e-9);
    assert.ok(Math.abs(valueAt(axis, 2) - axis.high) < 1e-9);
  }
});

test("numbers of a linear axis are round, have equal digits and stay within it", () => {
  const texts = (axis: Axis, most: number) => ticks(axis, most).map(({ text }) => text);
  assert.deepEqual(texts({ low: 0, high: 1 }, 5), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
  assert.deepEqual(texts({ low: -0.45, high: 1.04 }, 3), ["0", "0.5", "1.0"]);
  assert.deepEqual(texts({ low: -1, high: 1 }, 4), ["−1.0", "−0.5", "0", "0.5", "1.0"]);
  assert.deepEqual(texts({ low: 0, high: 40 }, 4), ["0", "10", "20", "30", "40"]);
});

test("numbers of a logarithmic axis are powers of ten", () => {
  const [first, ...rest] = ticks({ low: 1e-16, high: 10, scale: "log" }, 5);
  assert.equal(first.text, "10");
  assert.ok(rest.length >= 3 && rest.length <= 5);
  for (const { value, text } of rest) {
    assert.ok(Number.isInteger(Math.round(1e6 * Math.log10(value)) / 1e6));
    assert.ok(Math.abs(Number(text) / value - 1) < 1e-9, text);
  }
});

test("a plane is marked at round values, at the sharp pixels of its view", () => {
  const { x, y } = marked(plane([0, 0, 2], 400));
  assert.deepEqual(
    x.map(({ text, pixel }) => [text, pixel]),
    [
      ["−2", 0.5],
      ["−1", 100.5],
      ["0", 200.5],
      ["1", 300.5],
      ["2", 400.5],
    ],
  );
  assert.deepEqual(
    y.map(({ pixel }) => pixel).reverse(),
    x.map(({ pixel }) => pixel),
  );
});

test("a chart is marked within its area, at most as often as asked", () => {
  const view = chart({ x: { low: 0, high: 1 }, y: { low: 0, high: 300 } }, 400, 200),
    { x, y } = marked(view, { x: 4 });
  assert.deepEqual(
    x.map(({ value }) => value),
    [0, 0.5, 1],
  );
  for (const { pixel } of y)
    assert.ok(pixel >= view.area.top && pixel <= view.area.bottom + 1, String(pixel));
});
