import assert from "node:assert/strict";
import { test } from "node:test";
import { paintSteps } from "../../../../assets/src/kit/chart/steps.tsx";

const SIZE = { width: 246, height: 106 }; // 200 x 83 pixels between the axes

// Return what is drawn: lines as lists of points with their style, and texts.
function drawn(...args: [lines: any[], steps: any, look?: any]) {
  const lines: { points: number[][]; colour: string; dash: number[]; alpha: number }[] = [],
    texts: string[] = [];
  let path: number[][] = [],
    dash: number[] = [];
  const state: Record<string, any> = {
    beginPath: () => (path = []),
    moveTo: (x: number, y: number) => path.push([x, y]),
    lineTo: (x: number, y: number) => Number.isNaN(y) || path.push([x, y]),
    setLineDash: (to: number[]) => (dash = to),
    stroke: () =>
      lines.push({ points: path, colour: state.strokeStyle, dash, alpha: state.globalAlpha }),
    fillText: (text: string) => texts.push(text),
    measureText: (text: string) => ({ width: 6 * text.length }),
  };
  for (const name of ["clearRect", "save", "restore", "rect", "clip"]) state[name] = () => {};
  const [rows, steps, look = {}] = args;
  paintSteps(state as any, SIZE, rows, steps, { theme: "light", ...look });
  return { lines, texts };
}

const line = (value: (k: number) => number, more = {}) => ({ colour: "red", value, ...more });

test("a curve goes from the first step to the last one, from 0 to the highest value", () => {
  const { lines } = drawn([line((k) => k / 10)], { last: 20, step: 5 }),
    [curve] = lines.filter(({ colour }) => colour === "red");
  assert.equal(curve.points.length, 21);
  assert.deepEqual(curve.points[0], [40, 100]);
  assert.deepEqual(curve.points[20], [240, 17]);
});

test("long histories are drawn with at most 500 points, values that are not measured with none", () => {
  const value = (k: number) => (k % 2 ? NaN : 1),
    { lines, texts } = drawn([line(value)], { last: 4001, step: 7 }),
    [{ points }] = lines.filter(({ colour }) => colour === "red");
  assert.ok(points.length > 200 && points.length <= 500);
  assert.ok(texts.includes("1"));
});

test("the mean has its name and value above, the noise is faint below it", () => {
  const row = line(() => 0.25, { name: "mean", dash: [5, 3], noisy: () => 3.4 }),
    { lines, texts } = drawn([row], { last: 30, step: 12 }, { title: "loss" }),
    [noise, mean] = lines.filter(({ colour }) => colour === "red");
  assert.deepEqual([noise.alpha, noise.dash, mean.alpha, mean.dash], [0.3, [], 1, [5, 3]]);
  assert.ok(texts.includes("loss") && texts.includes("mean 0.250"));
  assert.ok(texts.includes("4"), "the axis holds the noise");
});

test("the cursor and the marks are at their steps; few steps do not fill the width", () => {
  const { lines } = drawn([line(() => 1)], { last: 4, step: 4, marks: [1, 2] }, { top: 1 }),
    down = lines.filter(({ points: [a, b] }) => a[0] === b[0] && a[1] !== b[1]);
  assert.deepEqual(
    down.map(({ points }) => points[0][0]),
    [60.5, 80.5, 120.5],
  );
  assert.deepEqual(
    down.map(({ dash }) => dash.length),
    [2, 2, 0],
  );
});
