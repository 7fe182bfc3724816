import assert from "node:assert/strict";
import { test } from "node:test";
import { placeNames } from "../../../../assets/src/inspection/explore/labels.ts";

const FRAME = { width: 400, height: 300 };

test("a name alone stands at its point", () => {
  const [place] = placeNames([{ x: 200, y: 150, width: 60, height: 17 }], FRAME, 9);
  assert.deepEqual(place, { x: 200, y: 150, moved: false });
});

test("names of one place stand around it, the first at it, and none over another", () => {
  const names = Array.from({ length: 30 }, (_, k) => ({
    x: 200 + (k % 3),
    y: 150 + (k % 5),
    width: 40 + k,
    height: 17,
  }));
  const places = placeNames(names, FRAME, 99);
  assert.equal(places[0].moved, false);
  const boxes = places.flatMap((p, k) =>
    p ? [[p.x - names[k].width / 2, p.y - 8.5, p.x + names[k].width / 2, p.y + 8.5]] : [],
  );
  assert.ok(boxes.length >= 3 && boxes.length < names.length);
  for (const [i, a] of boxes.entries())
    for (const b of boxes.slice(i + 1))
      assert.ok(a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1]);
});

test("a name at the edge moves into the frame, and one too wide for it waits", () => {
  const [edge, wide] = placeNames(
    [
      { x: 2, y: 150, width: 60, height: 17 },
      { x: 200, y: 50, width: 500, height: 17 },
    ],
    FRAME,
    9,
  );
  assert.ok(edge.moved && edge.x - 30 >= 0);
  assert.equal(wide, null);
});

test("no name lies over an image, its own one included", () => {
  const name = { x: 200, y: 150, width: 60, height: 17, gap: 22 };
  const own: [number, number, number, number] = [178, 128, 222, 172];
  const [place] = placeNames([name], FRAME, 9, [own]);
  assert.ok(place && place.y + 8.5 <= own[1]);
  const [none] = placeNames([name], FRAME, 9, [[0, 0, 400, 300]]);
  assert.equal(none, null);
});

test("no more names than asked for", () => {
  const names = Array.from({ length: 8 }, (_, k) => ({
    x: 50,
    y: 20 + 30 * k,
    width: 30,
    height: 17,
  }));
  assert.equal(placeNames(names, FRAME, 3).filter(Boolean).length, 3);
});

test("of its free positions a name takes the first that covers the fewest points", () => {
  const name = { x: 200, y: 150, width: 60, height: 17 };
  const lower = ([, top]: number[]) => (top < 150 ? 3 : 1);
  const [place] = placeNames([name], FRAME, 9, [], lower);
  assert.deepEqual(place, { x: 200, y: 150 + 8.5 + 11, moved: true });
  const [none] = placeNames([name], FRAME, 9, [], () => Infinity);
  assert.equal(none, null);
});
