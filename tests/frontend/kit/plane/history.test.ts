import assert from "node:assert/strict";
import { test } from "node:test";
import { History } from "../../../../assets/src/kit/plane/history.ts";

test("undo and redo walk through the states; the first one stays", () => {
  const history = new History("a");
  assert.equal(history.canUndo, false);
  assert.equal(history.undo(), undefined);
  history.push("b");
  history.push("b"); // the same again is no step
  history.push("c");
  assert.equal(history.undo(), "b");
  assert.equal(history.undo(), "a");
  assert.equal(history.undo(), undefined);
  assert.equal(history.redo(), "b");
  assert.equal(history.canRedo, true);
  history.push("d");
  assert.equal(history.redo(), undefined, "a new state ends what could be redone");
  assert.equal(history.undo(), "b");
});

test("at most a hundred states are kept, the oldest are dropped", () => {
  const history = new History("0");
  for (let i = 1; i <= 150; i++) history.push(String(i));
  let last: string | undefined;
  while (history.canUndo) last = history.undo();
  assert.equal(last, "51");
  history.restart("x");
  assert.deepEqual([history.canUndo, history.canRedo], [false, false]);
});
