import assert from "node:assert/strict";
import { test } from "node:test";
import { Cloud, STEPS } from "../../../../assets/src/inspection/explore/cloud.ts";
import { Grid, MOST } from "../../../../assets/src/inspection/explore/grid.ts";

const MANY = MOST + 50_000;

function noise(seed: number) {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

// Nine tenths of the points in a corner, the others anywhere.
function places(count: number) {
  const random = noise(7);
  return Uint16Array.from({ length: 2 * count }, (_, i) =>
    Math.floor(random() * STEPS * ((i >> 1) % 10 ? 0.2 : 1)),
  );
}

const rowsTo = (count: number) => Uint32Array.from({ length: count }, (_, i) => i);

test("a window has every point in it, and few beside", () => {
  const xy = places(20_000),
    grid = new Grid(xy, rowsTo(20_000)),
    window = { left: 0.11, right: 0.3, bottom: 0.05, top: 0.17 },
    inside = [...rowsTo(20_000)].filter((i) => {
      const [x, y] = [xy[2 * i] / STEPS, xy[2 * i + 1] / STEPS];
      return x >= window.left && x <= window.right && y >= window.bottom && y <= window.top;
    }),
    taken = new Set(grid.take(window));
  assert.ok(inside.length > 1000);
  assert.ok(inside.every((i) => taken.has(i)));
  assert.ok(taken.size < 1.3 * inside.length);
  assert.equal(taken.size, grid.count(window));
  assert.equal(grid.count(), 20_000);
});

test("where there are too many each cell keeps its share, and one at least", () => {
  const xy = places(MANY),
    grid = new Grid(xy, rowsTo(MANY)),
    cell = (i: number) => (xy[2 * i + 1] >> 9) * 128 + (xy[2 * i] >> 9),
    taken = grid.take(undefined, 40_000);
  assert.ok(taken.length <= 40_000 + 128 * 128);
  assert.ok(taken.length > 30_000);
  assert.equal(new Set(taken).size, taken.length);
  assert.deepEqual(new Set(Array.from(taken, cell)), new Set(Array.from(rowsTo(MANY), cell)));
  const near = { left: 0, right: 0.1, bottom: 0, top: 0.1 },
    closer = new Set(grid.take(near, 40_000));
  const kept = taken.filter((i) => xy[2 * i] < 0.1 * STEPS && xy[2 * i + 1] < 0.1 * STEPS);
  assert.ok(
    kept.every((i) => closer.has(i)),
    "what was drawn stays as one comes closer",
  );
  assert.ok(closer.size > kept.length);
});

test("of very many points the same one lies under the pointer as by looking at all", () => {
  const xy = places(MANY),
    cloud = new Cloud({
      xy,
      group: new Uint8Array(MANY),
      index_steps: Int32Array.from({ length: MANY }, () => 1),
      label_steps: Int32Array.from([0]),
      central: Int32Array.from([0]),
      counts: Int32Array.from([MANY]),
      colours: ["#000000"],
      names: ["one"],
      shapes: { xy: [MANY, 2] },
    }),
    random = noise(3);
  for (let k = 0; k < 50; k++) {
    const [x, y] = [random() * 0.3, random() * 0.3];
    let best = -1,
      least = 0.01 ** 2;
    for (let i = 0; i < MANY; i++) {
      const d = (xy[2 * i] / STEPS - x) ** 2 + (xy[2 * i + 1] / STEPS - y) ** 2;
      if (i % 3 && d <= least) [best, least] = [i, d];
    }
    assert.equal(
      cloud.nearest(x, y, 0.01, (i) => i % 3),
      best,
    );
  }
  const window = { left: 0.9, right: 0.95, bottom: 0.9, top: 0.95 },
    found = cloud.within(window, 1000);
  assert.ok(found.length > 10);
  assert.ok(found.every((i) => xy[2 * i] >= 0.9 * STEPS && xy[2 * i + 1] <= 0.95 * STEPS));
});
