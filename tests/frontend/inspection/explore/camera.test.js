import assert from "node:assert/strict";
import { test } from "node:test";
import { Camera } from "../../../../assets/src/inspection/explore/camera.ts";

const close = (a, b) =>
  a.forEach((v, k) => assert.ok(Math.abs(v - b[k]) < 1e-9, `${a} is not ${b}`));

function framed() {
  const camera = new Camera();
  camera.frame(800, 600, [{ size: 1 }, { size: 0.5 }]);
  return camera;
}

test("without zoom all points just fit, whatever the shape of either", () => {
  const camera = framed();
  assert.equal(camera.side, 800); // the width is the limit: 600 / 0.5 is larger
  close(camera.pixels(0.5, 0.5), [400, 300]);
  assert.ok(camera.pixels(0, 1)[1] < 0); // y up
});

test("a place and its pixels are each other's inverse", () => {
  const camera = framed();
  camera.closer(3, 100, 50);
  for (const [x, y] of [
    [0.1, 0.9],
    [0.5, 0.5],
    [0.33, 0.02],
  ])
    close(camera.place(...camera.pixels(x, y)), [x, y]);
});

test("zooming keeps what lies under the pointer", () => {
  const camera = framed(),
    before = camera.place(300, 200);
  camera.closer(2.5, 300, 200);
  close(camera.place(300, 200), before);
  assert.equal(camera.zoom, 2.5);
});

test("no farther than the whole, no closer than the places are fine; never off the square", () => {
  const camera = framed();
  camera.closer(1e9);
  assert.equal(camera.zoom, 200);
  camera.closer(1e-9);
  assert.equal(camera.zoom, 1);
  camera.look(7, -2);
  assert.deepEqual([camera.x, camera.y], [1, 0]);
  camera.showAll();
  assert.deepEqual([camera.x, camera.y, camera.zoom], [0.5, 0.5, 1]);
});

test("the window is what is in sight, and what the painter maps to the canvas", () => {
  const camera = framed();
  camera.closer(4);
  const { left, right, bottom, top } = camera.window(),
    { middle, scale } = camera.clip();
  close(camera.pixels(left, top), [0, 0]);
  close(camera.pixels(right, bottom), [800, 600]);
  close([(right - middle[0]) * scale[0], (top - middle[1]) * scale[1]], [1, 1]);
});
