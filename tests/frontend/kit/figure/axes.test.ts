import assert from "node:assert/strict";
import { test } from "node:test";
import { marked } from "../../../../assets/src/kit/figure/axes.ts";
import { chart, plane } from "../../../../assets/src/kit/figure/view.ts";

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
