import assert from "node:assert/strict";
import { test } from "node:test";
import type { Options, State } from "../../../../assets/src/pooling/transport/types.ts";
import { STEPS, join } from "../../../../assets/src/pooling/transport/draw.ts";
import { Editor } from "../../../../assets/src/pooling/transport/editor.ts";

const RED = join(STEPS, 0),
  BLUE = join(0, STEPS);
const state: State = {
  pixels: new Array(100).fill(0),
  prototypes: [RED, BLUE],
  mu: 0.2,
  epsilon: 5,
  sweeps: 100,
};
const options = { limits: { prototypes: 3 }, presets: [{ state }] } as unknown as Options;
const edit = (reports: boolean[] = []) =>
  new Editor(state, options, (atRest) => reports.push(atRest));

test("a stroke is one entry of the undo list and reports once at rest", () => {
  const reports: boolean[] = [],
    editor = edit(reports);
  editor.begin();
  editor.paint(1, 1);
  editor.paint(2, 1);
  editor.end();
  assert.deepEqual(reports, [false, false, true]);
  assert.deepEqual(editor.state.pixels.slice(10, 14), [0, RED, RED, 0]);
  editor.undo();
  assert.deepEqual(
    [editor.state.pixels[11], editor.scenes.canUndo, editor.scenes.canRedo],
    [0, false, true],
  );
  editor.redo();
  assert.equal(editor.state.pixels[12], RED);
});

test("a gesture that changes nothing leaves nothing to undo", () => {
  const editor = edit();
  editor.begin();
  editor.end();
  assert.equal(editor.scenes.canUndo, false);
});

test("a wide brush paints a square, cut off at the border", () => {
  const editor = edit();
  editor.setBrush({ side: 3 });
  editor.paint(0, 0);
  assert.equal(editor.state.pixels.filter(Boolean).length, 4);
});

test("purity mixes the two other colours in; a free colour has no hue", () => {
  const editor = edit();
  editor.setBrush({ hue: "blue" });
  editor.setBrush({ purity: 0.5 });
  assert.equal(editor.brush.code, join(STEPS / 4, STEPS / 2));
  editor.setBrush({ code: 7 });
  assert.deepEqual([editor.brush.hue, editor.brush.code], ["free", 7]);
});

test("there is at least one prototype, and at most the limit", () => {
  const editor = edit();
  editor.add();
  editor.add();
  assert.equal(editor.state.prototypes.length, 3);
  for (let i = 0; i < 5; i++) editor.remove();
  assert.deepEqual(editor.state.prototypes, [RED]);
});

test("a preset is the one loaded until the state changes", () => {
  const editor = edit();
  editor.loadPreset(0);
  assert.equal(editor.preset, 0);
  editor.set("mu", 0.3);
  assert.deepEqual([editor.preset, state.mu], [null, 0.2]);
});

test("a link that is followed can be undone, too", () => {
  const editor = edit();
  editor.paint(0, 0);
  editor.end();
  editor.load({ ...state, pixels: new Array(100).fill(BLUE) });
  editor.undo();
  assert.equal(editor.state.pixels[0], RED);
});
