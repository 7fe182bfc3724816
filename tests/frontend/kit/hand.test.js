import assert from "node:assert/strict";
import { test } from "node:test";
import { arrow, follow } from "../../../assets/src/kit/hand.ts";

// The members of an element that a drag uses.
class Target extends EventTarget {
  /** @type {number[]} */
  captured = [];
  /** @param {number} id */
  setPointerCapture(id) {
    this.captured.push(id);
  }
}

function dragged() {
  const target = new Target(),
    /** @type {unknown[]} */
    heard = [];
  follow(
    /** @type {any} */ ({ pointerId: 7 }),
    /** @type {any} */ (target),
    (e) => heard.push(e.type),
    (moved) => heard.push(moved),
  );
  return { target, heard };
}

for (const ending of ["pointerup", "pointercancel", "lostpointercapture"])
  test(`a drag ends once, with ${ending}, and hears nothing afterwards`, () => {
    const { target, heard } = dragged();
    for (const kind of ["pointermove", ending, "lostpointercapture", "pointermove"])
      target.dispatchEvent(new Event(kind));
    assert.deepEqual(heard, ["pointermove", true]);
    assert.deepEqual(target.captured, [7]);
  });

test("a press that moved nothing says so", () => {
  const { target, heard } = dragged();
  target.dispatchEvent(new Event("pointerup"));
  assert.deepEqual(heard, [false]);
});

test("a drag that the browser takes over says that it was cancelled", () => {
  for (const [kind, expected] of /** @type {const} */ ([
    ["pointercancel", true],
    ["pointerup", false],
  ])) {
    const target = new Target(),
      /** @type {boolean[]} */
      heard = [];
    follow(
      /** @type {any} */ ({ pointerId: 7 }),
      /** @type {any} */ (target),
      () => {},
      (_, cancelled) => heard.push(cancelled),
    );
    target.dispatchEvent(new Event(kind));
    assert.deepEqual(heard, [expected]);
  }
});

test("arrow keys point up and right, tenfold with Shift, and do not scroll", () => {
  let stopped = 0;
  const press = (/** @type {string} */ key, shiftKey = false) =>
    arrow(/** @type {any} */ ({ key, shiftKey, preventDefault: () => stopped++ }));
  assert.deepEqual(press("ArrowUp"), [0, 1]);
  assert.deepEqual(press("ArrowLeft", true), [-10, 0]);
  assert.equal(press("a"), undefined);
  assert.equal(stopped, 2);
});
