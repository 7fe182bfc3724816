import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Cloud,
  STEPS,
  corners,
  packed,
  unpacked,
} from "../../../../assets/src/inspection/explore/cloud.ts";

// Return a cloud of points at shares of the square, as points.bin holds them.
function cloudOf(places: number[][], labels = places.map(() => 0)) {
  return new Cloud({
    xy: Uint16Array.from(places.flat(), (v) => Math.round(v * STEPS)),
    group: Uint8Array.from(labels),
    index_steps: Int32Array.from(places, (_, i) => (i ? 3 : 10)),
    label_steps: Int32Array.from([4, 2]),
    central: Int32Array.from([0, 1]),
    counts: Int32Array.from([5, 6]),
    colours: ["#000000", "#ffffff"],
    names: ["one", "two"],
    shapes: { xy: [places.length, 2] },
  });
}

// Return a deterministic pseudo-random generator, so that every machine runs the same test.
function noise(seed: number) {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

test("samples and labels are sums of their steps", () => {
  const cloud = cloudOf([
    [0, 0],
    [0.5, 0.5],
    [1, 1],
  ]);
  assert.deepEqual([...cloud.indices], [10, 13, 16]);
  assert.deepEqual(
    cloud.classes.map((c) => [c.name, c.label, c.count, c.colour]),
    [
      ["one", 4, 5, "#000000"],
      ["two", 6, 6, "#ffffff"],
    ],
  );
  assert.equal(cloud.row(13), 1);
  assert.equal(cloud.row(12), -1);
});

test("between two frames points lie on the way", () => {
  const cloud = cloudOf([[0, 0.25]]);
  cloud.to = Uint16Array.from([STEPS, 0]);
  cloud.share = 0.5;
  assert.ok(Math.abs(cloud.x(0) - 0.5) < 1e-4 && Math.abs(cloud.y(0) - 0.125) < 1e-4);
});

test("the nearest point is that of a search by hand, among the wanted", () => {
  const random = noise(3),
    places = Array.from({ length: 200 }, () => [random(), random()]),
    cloud = cloudOf(places);
  for (let k = 0; k < 50; k++) {
    const [px, py] = [random(), random()],
      even = (i: number) => i % 2 === 0;
    const away = (i: number) => Math.hypot(cloud.x(i) - px, cloud.y(i) - py);
    const best = [...places.keys()].filter(even).reduce((a, b) => (away(b) < away(a) ? b : a));
    assert.equal(cloud.nearest(px, py, 2, even), best);
    assert.equal(cloud.nearest(px, py, away(best) * 0.99, even), -1);
  }
});

test("an arrow leads to the near point of its quarter", () => {
  const cloud = cloudOf([
      [0.5, 0.5],
      [0.6, 0.5],
      [0.9, 0.5],
      [0.52, 0.8],
      [0.1, 0.5],
      [0.53, 0.45],
    ]),
    all = { left: 0, right: 1, bottom: 0, top: 1 },
    from = [0.5, 0.5];
  const way = (arrow: number[], window = all) =>
    cloud.nearestInDirection(from, arrow, window, () => true, 0);
  assert.deepEqual([way([1, 0]), way([0, 1]), way([-1, 0]), way([0, -1])], [1, 3, 4, 5]);
  assert.equal(way([-1, 0], { ...all, left: 0.2 }), -1); // out of view
});

test("within a window are those in it, one more than asked for at most", () => {
  const cloud = cloudOf(Array.from({ length: 20 }, (_, i) => [i / 20, 0.5]));
  const window = { left: 0.2, right: 0.4, bottom: 0, top: 1 };
  assert.deepEqual(cloud.within(window, 100), [4, 5, 6, 7, 8]);
  assert.equal(cloud.within(window, 2).length, 3);
});

test("a lasso takes what it winds around, whichever way it is drawn", () => {
  const random = noise(11),
    places = Array.from({ length: 500 }, () => [random(), random()]),
    cloud = cloudOf(places),
    square = [0.2, 0.3, 0.7, 0.3, 0.7, 0.9, 0.2, 0.9].map((v) => Math.round(v * STEPS));
  const inside = places.map(([x, y]) => Number(x > 0.2 && x < 0.7 && y > 0.3 && y < 0.9));
  assert.deepEqual([...cloud.maskInside(square)], inside);
  const backwards = [6, 7, 4, 5, 2, 3, 0, 1].map((k) => square[k]);
  assert.deepEqual([...cloud.maskInside(backwards)], inside);
  assert.ok(inside.includes(1) && inside.includes(0));
});

test("a loop drawn twice over itself still holds its points", () => {
  const cloud = cloudOf([
      [0.5, 0.5],
      [0.95, 0.5],
    ]),
    square = [0.2, 0.2, 0.8, 0.2, 0.8, 0.8, 0.2, 0.8].map((v) => Math.round(v * STEPS));
  assert.deepEqual([...cloud.maskInside([...square, ...square])], [1, 0]);
});

test("a line is kept by the corners that matter", () => {
  const edge = (a: number[], b: number[]) =>
    Array.from({ length: 40 }, (_, i) => a.map((v, k) => v + ((b[k] - v) * i) / 40));
  const square = [
      [0.1, 0.1],
      [0.9, 0.1],
      [0.9, 0.9],
      [0.1, 0.9],
    ],
    line = square.flatMap((corner, k) => edge(corner, square[(k + 1) % 4]));
  const kept = corners(line);
  const places = Array.from({ length: kept.length / 2 }, (_, k) => [kept[2 * k], kept[2 * k + 1]]);
  for (const [x, y] of square)
    assert.ok(places.some(([u, v]) => Math.hypot(u - x * STEPS, v - y * STEPS) < 2));
  const circle = Array.from({ length: 500 }, (_, i) => [
    0.5 + 0.4 * Math.cos(i / 79.6),
    0.5 + 0.4 * Math.sin(i / 79.6),
  ]);
  assert.equal(corners(circle).length, 128);
  // points outside are moved to the edge
  assert.deepEqual([...corners([[-1, 2]])].slice(0, 2), [0, STEPS]);
});

test("bits and bytes go there and back", () => {
  assert.deepEqual(
    [...unpacked(Uint8Array.from([0b10000101, 1]), 10)],
    [1, 0, 1, 0, 0, 0, 0, 1, 1, 0],
  );
  assert.equal(packed(Uint16Array.from([1, 256])), Buffer.from([1, 0, 0, 1]).toString("base64"));
});
