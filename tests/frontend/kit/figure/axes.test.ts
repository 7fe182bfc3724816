import assert from "node:assert/strict";
import { test } from "node:test";
import { ticks } from "../../../../assets/src/kit/figure/axes.ts";
import { chart, plane } from "../../../../assets/src/kit/figure/view.ts";

test("ticks of a plane are at round values, with as many digits as their step", () => {
  const view = plane([0, 0, 2], 400);
  assert.deepEqual(
    ticks(view, 0).map(({ text }) => text),
    ["-2", "-1", "0", "1", "2"],
  );
  assert.deepEqual(
    ticks(plane([0, 0, 0.2], 400), 1).map(({ text }) => text),
    ["-0.2", "-0.1", "0.0", "0.1", "0.2"],
  );
  assert.equal(ticks(view, 0)[2].pixel, 200.5);
});

test("ticks of a chart lie within its area and take their text from the figure", () => {
  const view = chart({ x: [0, 1], y: [0, 300] }, 400, 200),
    percent = ticks(view, 0, { most: 4, text: (v) => `${Math.round(100 * v)} %` });
  assert.deepEqual(
    percent.map(({ text }) => text),
    ["0 %", "50 %", "100 %"],
  );
  for (const { pixel } of ticks(view, 1))
    assert.ok(pixel >= view.area.top && pixel <= view.area.bottom + 1);
});
