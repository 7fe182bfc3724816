import assert from "node:assert/strict";
import { test } from "node:test";
import { Order } from "../../../../assets/src/inspection/explore/order.ts";

const COUNT = 60_000,
  WHOLE = { left: 0, right: 1, bottom: 0, top: 1 },
  QUARTER = { left: 0, right: 0.5, bottom: 0, top: 0.5 };

// Every tenth point is highlighted.
const cloud = {
    count: COUNT,
    share: 0,
    from: Uint16Array.from({ length: 2 * COUNT }, (_, i) => Math.imul(i + 1, 2_654_435_761) >>> 16),
  },
  states = Uint8Array.from({ length: COUNT }, (_, i) => (i % 10 ? 0 : 1)),
  inside = (i: number) => cloud.from[2 * i] <= 32_767 && cloud.from[2 * i + 1] <= 32_767;

test("few points are all drawn, those that stand out last, shuffled within", () => {
  const { rows, front } = new Order(COUNT).rowsToDraw(cloud, states, QUARTER);
  assert.deepEqual(
    [...rows].sort((a, b) => a - b),
    [...states.keys()],
  );
  assert.equal(front, COUNT * 0.9);
  assert.ok(rows.subarray(front).every((i) => states[i] === 1));
  assert.notDeepEqual([...rows], [...rows.slice(0, front).sort(), ...rows.slice(front).sort()]);
});

test("of many those in the window are drawn, what stands back thinned out first", () => {
  const order = new Order(20_000),
    whole = order.rowsToDraw(cloud, states, WHOLE);
  assert.equal(whole.rows.length - whole.front, COUNT / 10);
  assert.ok(whole.rows.length < 1.2 * 20_000);
  const near = new Set(order.rowsToDraw(cloud, states, QUARTER).rows);
  assert.ok([...states.keys()].every((i) => !inside(i) || near.has(i)));
  assert.ok(near.size < COUNT / 3);
});

test("the same answer until states, places or the window are others", () => {
  const order = new Order(20_000),
    first = order.rowsToDraw(cloud, states, WHOLE);
  assert.equal(order.rowsToDraw(cloud, states, { ...WHOLE }), first);
  assert.notEqual(order.rowsToDraw(cloud, states, QUARTER), first);
  const moved = order.rowsToDraw({ ...cloud, share: 0.5 }, states, QUARTER);
  assert.equal(order.rowsToDraw({ ...cloud, share: 0.6 }, states, WHOLE), moved);
  assert.notEqual(order.rowsToDraw(cloud, states.slice(), WHOLE), moved);
});
