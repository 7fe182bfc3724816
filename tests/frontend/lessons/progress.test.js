import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { answered, remember, lessonProgress } from "../../../assets/src/lessons/progress.ts";

/** @type {Map<string, string>} */
const kept = new Map();
Object.defineProperty(globalThis, "localStorage", {
  configurable: true,
  value: {
    getItem: (/** @type {string} */ key) => kept.get(key) ?? null,
    setItem: (/** @type {string} */ key, /** @type {string} */ text) => kept.set(key, text),
  },
});
beforeEach(() => kept.clear());

const row = { name: "triplet", title: "", claim: "", minutes: 3, steps: ["a", "b", "c"] };

test("what was answered is kept once each, in order", () => {
  remember("triplet", 3);
  remember("triplet", 1);
  remember("triplet", 1);
  assert.deepEqual(answered(), { triplet: [1, 3] });
  assert.deepEqual(lessonProgress(row, answered()), { done: [1, 3], next: 2 });
});

test("a new lesson begins with its first step, and so does one that is done", () => {
  assert.deepEqual(lessonProgress(row, {}), { done: [], next: 1 });
  assert.deepEqual(lessonProgress(row, { triplet: [1, 2, 3, 9] }), { done: [1, 2, 3], next: 1 });
});

test("what other hands left in the storage does no harm", () => {
  for (const text of ["{", "7", "null", '"x"', '{"triplet": 3}']) {
    kept.set("dml-lessons", text);
    assert.deepEqual(answered(), {});
  }
});
