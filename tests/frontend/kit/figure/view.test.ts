import assert from "node:assert/strict";
import { test } from "node:test";
import {
  chart,
  enclosing,
  panned,
  pixels,
  plane,
  zoomed,
  type View,
} from "../../../../assets/src/kit/figure/view.ts";

const near = (a: readonly number[], b: readonly number[]) =>
  a.forEach((x, i) => assert.ok(Math.abs(x - b[i]) < 1e-9, `${a} is not ${b}`));

test("a plane shows its centre in the middle, y up, half its side at the shorter edge", () => {
  const square = plane([1, 2, 3], 600);
  near(square.to([1, 2]), [300, 300]);
  near(square.to([4, 5]), [600, 0]);
  const wide = plane([1, 2, 3], 900, 600);
  near(wide.to([1, 2]), [450, 300]);
  near(wide.to([1, 5]), [450, 0]);
  near(wide.to([5.5, 2]), [900, 300]); // square units: the longer edge shows more
  assert.equal(square.scale, 100);
});

test("the way back is the inverse in every kind of view", () => {
  const views: View[] = [
    plane([1, 2, 3], 900, 600),
    plane([-1, 0.5, 0.1], 300),
    chart({ x: { low: 0.1, high: 2, scale: "log" }, y: { low: -1, high: 5 } }, 380, 190),
    pixels(200, 100),
  ];
  for (const view of views) near(view.from(view.to([0.3, 0.7])), [0.3, 0.7]);
});

test("a chart spans its ranges inside the margin", () => {
  const view = chart({ x: { low: 0, high: 2 }, y: { low: 0, high: 10 } }, 400, 200, {
    left: 40,
    top: 10,
    right: 20,
    bottom: 30,
  });
  near(view.to([0, 0]), [40, 170]);
  near(view.to([2, 10]), [380, 10]);
  near(view.from([0, 0]), [0, 10]); // outside: the nearest place of the axes
});

test("zooming keeps the centre, or the place under the pointer, and its limits", () => {
  assert.deepEqual(zoomed([1, 2, 4], 0.5), [1, 2, 2]);
  const about = [2, 2],
    before = plane([1, 2, 4], 500).to(about),
    after = plane(zoomed([1, 2, 4], 0.5, {}, about), 500).to(about);
  near(before, after);
  assert.equal(zoomed([0, 0, 1], 1e-9)[2], 0.05);
  assert.equal(zoomed([0, 0, 1], 1e9, { farthest: 8 })[2], 8);
});

test("a plane that is moved keeps the place under the pointer", () => {
  const view = plane([1, 2, 3], 600),
    place = view.from([100, 100]);
  near(plane(panned(view, 30, -20), 600).to(place), [130, 80]);
});

test("the window that encloses places shows all of them with space around", () => {
  const places = [
      [0, 0],
      [2, 1],
    ],
    view = plane(enclosing(places), 100);
  for (const place of places)
    for (const pixel of view.to(place)) assert.ok(pixel > 5 && pixel < 95, String(pixel));
  assert.ok(enclosing([[1, 1]])[2] > 0, "one point has a window, too");
});

test("zooming far in keeps as many decimals as the figure asks for", () => {
  const fine = zoomed([0.5, 0.5, 0.5], 1 / 3000, { closest: 1e-6, digits: 9 });
  near(fine, [0.5, 0.5, 0.5 / 3000], 1e-9);
  assert.equal(zoomed([0.5, 0.5, 0.5], 1 / 3000, { closest: 1e-6 })[2], 0.0002);
});
