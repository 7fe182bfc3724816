import assert from "node:assert/strict";
import { test } from "node:test";
import { Camera, clipOf, windowOf } from "../../../../assets/src/inspection/explore/camera.ts";
import { zoomed } from "../../../../assets/src/kit/figure/view.ts";

const close = (a: number[], b: number[]) =>
  a.forEach((v, k) => assert.ok(Math.abs(v - b[k]) < 1e-9, `${a} is not ${b}`));
const viewOf = (camera: Camera) => camera.view(800, 600, [1, 0.5]);

// Zoom as the figure does, about a pixel.
function closer(camera: Camera, factor: number, pixel = [400, 300]) {
  const view = viewOf(camera),
    limits = { ...camera.limits(view), digits: 12 };
  camera.take(view, zoomed(view.window ?? [], 1 / factor, limits, view.from(pixel)));
}

test("without zoom all points just fit, whatever the shape of either", () => {
  const view = viewOf(new Camera());
  assert.equal(view.scale, 800); // the width is the limit: 600 / 0.5 is larger
  close(view.to([0.5, 0.5]), [400, 300]);
  assert.ok(view.to([0, 1])[1] < 0); // y up
});

test("a place and its pixels are each other's inverse", () => {
  const camera = new Camera();
  closer(camera, 3, [100, 50]);
  const { from, to } = viewOf(camera);
  for (const place of [
    [0.1, 0.9],
    [0.5, 0.5],
    [0.33, 0.02],
  ])
    close(from(to(place)), place);
});

test("zooming keeps what lies under the pointer", () => {
  const camera = new Camera(),
    before = viewOf(camera).from([300, 200]);
  closer(camera, 2.5, [300, 200]);
  close(viewOf(camera).from([300, 200]), before);
  close([camera.zoom], [2.5]);
});

test("no farther than the whole, no closer than the places are fine; never off the square", () => {
  const camera = new Camera();
  closer(camera, 1e9);
  assert.equal(camera.zoom, 200);
  closer(camera, 1e-9);
  assert.equal(camera.zoom, 1);
  camera.look(7, -2);
  assert.deepEqual([camera.x, camera.y], [1, 0]);
  camera.look(0.5, 0.5, 1000);
  assert.deepEqual([camera.x, camera.y, camera.zoom], [0.5, 0.5, 200]);
});

test("the map follows the pointer that moves it", () => {
  const camera = new Camera();
  closer(camera, 4);
  const place = viewOf(camera).from([300, 200]);
  camera.pan(viewOf(camera), 30, -20);
  close(viewOf(camera).to(place), [330, 180]);
});

test("the window is what is in sight, and what the painter maps to the canvas", () => {
  const camera = new Camera();
  closer(camera, 4);
  const view = viewOf(camera),
    { left, right, bottom, top } = windowOf(view),
    { middle, scale } = clipOf(view);
  close(view.to([left, top]), [0, 0]);
  close(view.to([right, bottom]), [800, 600]);
  close([(right - middle[0]) * scale[0], (top - middle[1]) * scale[1]], [1, 1]);
});
