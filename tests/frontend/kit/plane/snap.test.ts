import assert from "node:assert/strict";
import { test } from "node:test";
import type { Scene } from "../../../../assets/src/kit/plane/types.ts";
import { keyStep, snapNow, snapped } from "../../../../assets/src/kit/plane/snap.ts";

const scene = (snap: Scene["snap"]) => ({
  anchor: [0, 0],
  positive: [1, 0],
  negative: [0.4, 0.7],
  probe: "negative" as const,
  view: [0, 0, 2],
  snap,
});
const length = ([x, y]: number[], [u, v]: number[]) => Math.hypot(x - u, y - v);
const near = (a: number, b: number) => assert.ok(Math.abs(a - b) < 1e-3, `${a} is not ${b}`);

test("each constraint holds where a point is put, and moves it no farther than another choice", () => {
  const at = [0.37, 0.61];
  assert.deepEqual(snapped(scene("free"), "negative", at), at);
  for (const v of snapped(scene("grid"), "negative", at)) near(v % 0.25, 0);
  near(length(snapped(scene("circle"), "negative", at, 2), [0, 0]), 2);
  const peak = snapped(scene("equilateral"), "negative", at);
  near(length(peak, [0, 0]), 1);
  near(length(peak, [1, 0]), 1);
  assert.ok(peak[1] > 0, "of two, the nearer one");
  const [x, y] = snapped(scene("isosceles"), "negative", at),
    sides = [length([x, y], [0, 0]), length([x, y], [1, 0]), 1];
  assert.ok(
    Math.abs(sides[0] - sides[1]) < 1e-3 || sides.some((s, i) => i < 2 && Math.abs(s - 1) < 1e-3),
  );
});

test("an arrow key reaches another position of the grid", () => {
  const on = { ...scene("grid"), negative: [0.25, 0.5] },
    moved = snapped(on, "negative", [0.25 + keyStep(on), 0.5]);
  assert.deepEqual(moved, [0.5, 0.5]);
});

test("on the circle all points are snapped and kept apart, for a triangle one", () => {
  const round = { ...scene("circle"), positive: [0.5, 0], negative: [0.9, 0.01] };
  snapNow(round);
  const places = [round.anchor, round.positive, round.negative];
  for (const place of places) near(length(place, [0, 0]), 1);
  for (const [i, j] of [
    [0, 1],
    [0, 2],
    [1, 2],
  ])
    assert.ok(length(places[i], places[j]) >= 0.05);
  const triangle = scene("equilateral");
  snapNow(triangle);
  assert.deepEqual(
    [triangle.anchor, triangle.positive],
    [
      [0, 0],
      [1, 0],
    ],
  );
  near(length(triangle.negative, [1, 0]), 1);
});
