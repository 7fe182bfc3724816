import assert from "node:assert/strict";
import { test } from "node:test";
import { along, placeThumbnails } from "../../../../assets/src/inspection/failures/thumbnails.ts";

const SIZE = 560,
  SIDE = 42;

test("images stand in the plane, over no point and no other image", () => {
  for (const points of [
    [
      [280, 280],
      [350, 280],
      [280, 120],
    ],
    [
      [280, 280],
      [284, 283],
      [279, 290],
    ],
    [
      [5, 5],
      [555, 5],
      [280, 555],
    ],
    [
      [3, 3],
      [4, 40],
      [5, 80],
    ],
  ]) {
    const placed = placeThumbnails(points, SIZE);
    placed.forEach(([x, y], i) => {
      assert.ok(x >= SIDE / 2 && y >= SIDE / 2 && x <= SIZE - SIDE / 2 && y <= SIZE - SIDE / 2);
      for (const [u, v] of points)
        assert.ok(Math.max(Math.abs(u - x), Math.abs(v - y)) >= SIDE / 2, `${placed} over a point`);
      for (const [u, v] of placed.slice(0, i))
        assert.ok(Math.max(Math.abs(u - x), Math.abs(v - y)) >= SIDE, `${placed} over each other`);
    });
  }
});

test("an image is near its own point, away from the others where that is free", () => {
  const points = [
    [200, 280],
    [360, 280],
    [280, 400],
  ];
  const [anchor, positive] = placeThumbnails(points, SIZE);
  assert.ok(anchor[0] < 200 && positive[0] > 360);
  assert.ok(Math.hypot(anchor[0] - 200, anchor[1] - 280) < 50);
});

test("an image leaves the arrow of its point to be seen", () => {
  const points = [
      [200, 280],
      [360, 280],
      [180, 200],
    ],
    tips = [[140, 280], null, [180, 110]];
  const drawn = along(points, tips);
  assert.ok(drawn.some(([x, y]) => x === 140 && y === 280));
  assert.ok(drawn.every(([x, y]) => (y === 280 && x < 200) || (x === 180 && y < 200)));
  for (const [x, y] of placeThumbnails(points, SIZE, drawn))
    for (const [u, v] of drawn)
      assert.ok(Math.max(Math.abs(u - x), Math.abs(v - y)) >= SIDE / 2, `${x}, ${y} over an arrow`);
  const filled = Array.from({ length: 900 }, (_, k) => [20 * (k % 30), 20 * Math.floor(k / 30)]);
  assert.deepEqual(placeThumbnails(points, SIZE, filled), placeThumbnails(points, SIZE));
});

test("images cover neither each other nor a point, wherever the triplet lies", () => {
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647,
    apart = (a, b) => Math.max(Math.abs(a[0] - b[0]), Math.abs(a[1] - b[1]));
  for (let k = 0; k < 500; k++) {
    const spread = [0, 1, 20, 60, 300][k % 5],
      at = [60 + 520 * random(), 60 + 520 * random()],
      points = [0, 1, 2].map(() =>
        at.map((x) => Math.min(Math.max(x + spread * (random() - 0.5), 0), 640)),
      ),
      placed = placeThumbnails(points, 640);
    placed.forEach((p, i) => {
      assert.ok(placed.slice(0, i).every((q) => apart(p, q) >= SIDE));
      assert.ok(points.every((q) => apart(p, q) >= 30));
      assert.ok(p.every((x) => x >= SIDE / 2 && x <= 640 - SIDE / 2));
    });
  }
});
