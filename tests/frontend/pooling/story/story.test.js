import assert from "node:assert/strict";
import { test } from "node:test";
import { behind } from "../../../../assets/pooling/story/story.js";

test("back leads to a step as it was left, or as it opens", () => {
  assert.equal(behind(undefined, null), "");
  assert.equal(behind({ left: "mu=0.3", brought: "mu=0.2" }, null), "mu=0.3");
});

test("next carries what is new, and what it brought before leads to the step as it was left", () => {
  assert.equal(behind(undefined, "mu=0.2"), "mu=0.2");
  assert.equal(behind({ brought: "mu=0.2" }, "mu=0.2"), "mu=0.2");
  assert.equal(behind({ left: "mu=0.2&sweeps=5", brought: "mu=0.2" }, "mu=0.2"), "mu=0.2&sweeps=5");
  assert.equal(behind({ left: "mu=0.2&sweeps=5", brought: "mu=0.2" }, "mu=0.4"), "mu=0.4");
});
