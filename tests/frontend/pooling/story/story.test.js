import assert from "node:assert/strict";
import { test } from "node:test";
import { linkAddress, origin } from "../../../../assets/src/pooling/story/story.ts";

test("back leads to a step as it was left, or as it opens", () => {
  assert.equal(linkAddress(undefined, null), "");
  assert.equal(linkAddress({ left: "mu=0.3", brought: "mu=0.2" }, null), "mu=0.3");
});

test("next carries what is new, and what it brought before leads to the step as it was left", () => {
  assert.equal(linkAddress(undefined, "mu=0.2"), "mu=0.2");
  assert.equal(linkAddress({ brought: "mu=0.2" }, "mu=0.2"), "mu=0.2");
  assert.equal(
    linkAddress({ left: "mu=0.2&sweeps=5", brought: "mu=0.2" }, "mu=0.2"),
    "mu=0.2&sweeps=5",
  );
  assert.equal(linkAddress({ left: "mu=0.2&sweeps=5", brought: "mu=0.2" }, "mu=0.4"), "mu=0.4");
});

test("where a map comes from is told as long as it is that map", () => {
  const step = { brought: "paint=AAA&mu=0.2", told: "image 6" };
  assert.equal(origin(step, "paint=AAA&mu=0.5", "paint"), "image 6");
  assert.equal(origin(step, "paint=AAB&mu=0.2", "paint"), "");
  assert.equal(origin(step, "map=cross", "paint"), "");
  assert.equal(origin({ brought: "mu=0.2", told: "image 6" }, "mu=0.2", "paint"), "");
  assert.equal(origin(undefined, "paint=AAA", "paint"), "");
});
