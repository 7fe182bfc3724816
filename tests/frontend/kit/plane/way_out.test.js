import assert from "node:assert/strict";
import { test } from "node:test";
import { wayOut } from "../../../../assets/src/kit/plane/way_out.ts";

const HOME = { anchor: [0, 0], positive: [0.5, 0], negative: [0.35, 0.75], view: [0.25, 0.1, 1.5] };
const PARAMETERS = { hyper: { m: 0.2, m2: null }, margin: "raw", mu: null };
const SCENE = { probe: "negative", ...HOME, ...PARAMETERS };
const DEAD = { quiet: true, flat: false, hit: false, raw: -0.9, m1: 0.2, m2: null };
const DEFAULTS = { bring: null, parameters: PARAMETERS, home: HOME, margin: "m", fixed: false };

test("where nothing moves, the parameters are reset first, then the points, then the margin is set", () => {
  const slid = { ...SCENE, hyper: { m: -0.5, m2: null }, negative: [3, 3] };
  assert.deepEqual(wayOut(DEAD, slid, DEFAULTS).change, PARAMETERS);
  const far = { ...SCENE, negative: [3, 3] };
  assert.deepEqual(wayOut(DEAD, far, DEFAULTS).change, HOME);
  const { label, change } = wayOut(DEAD, SCENE, DEFAULTS);
  assert.equal(label, "Set the margin to 1.4");
  assert.deepEqual(change, { hyper: { m: 1.4, m2: null } });
});

test("the figure of a lesson is not reset, and does not answer its question", () => {
  const way = wayOut(DEAD, { ...SCENE, negative: [3, 3] }, { ...DEFAULTS, fixed: true });
  assert.match(way.text, /no gradient anywhere/);
  assert.equal(way.label, undefined);
  const idle = { ...DEFAULTS, bring: [0.1, 0.2], fixed: true };
  assert.equal(wayOut({ ...DEAD, quiet: false }, SCENE, idle).text, "");
});

test("an anchor at the origin is named as the reason for no force", () => {
  const flat = { ...DEAD, quiet: false, flat: true, hit: true };
  const way = wayOut(flat, SCENE, DEFAULTS);
  assert.match(way.text, /A is at the origin/);
  assert.ok(way.change.anchor.some((x) => x !== 0));
  assert.doesNotMatch(wayOut(flat, { ...SCENE, anchor: [1, 0] }, DEFAULTS).text, /origin/);
});

test("an idle triplet is brought to a place where it is active", () => {
  const idle = { ...DEAD, quiet: false };
  assert.deepEqual(wayOut(idle, SCENE, { ...DEFAULTS, bring: [0.1, 0.2] }).change, {
    negative: [0.1, 0.2],
  });
  assert.equal(wayOut({ ...idle, hit: true }, SCENE, { ...DEFAULTS, bring: [0.1, 0.2] }).text, "");
});
