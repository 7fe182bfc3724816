import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Changes } from "../../../../assets/src/kit/timeline/changes.ts";

/** @typedef {{ rate: number, seed: number, changes: { at: number, rate: number }[] }} State */

/** @type {Changes<any>} */
let edits;
/** @type {any} */
let player;
/** @type {unknown[]} */
let heard;

/**
 * Show step `at` of a state with changes, and a rate in the panel.
 *
 * @param {State["changes"]} changes
 * @param {number} at
 * @param {number} rate of the panel
 */
function begun(changes, at, rate) {
  Object.assign(player.clock, { state: { rate: 1, seed: 3, changes }, at });
  edits.now = { rate };
}

beforeEach(() => {
  heard = [];
  const clock = {
    playing: false,
    requestFirst: () => {},
    ask: (/** @type {object} */ what) => heard.push(what),
    fork: (/** @type {State} */ state, /** @type {number} */ from) => {
      player.clock.state = state;
      heard.push(["fork", from]);
    },
    renew: (/** @type {State} */ state, /** @type {number} */ goal) => {
      player.clock.state = state;
      heard.push(["renew", goal]);
    },
  };
  player = {
    clock,
    figure: { settings: ["rate"] },
    options: { limits: { changes: 3, steps: 100 } },
    playback: { pause: () => {}, release: () => false },
    view: { pressed: { value: 2 }, playing: { value: false } },
    idle: true,
    panel: () => {},
    tell: (/** @type {string} */ text) => heard.push(text),
  };
  edits = new Changes(player);
});

test("in force at a step is what the last change up to it set, or the state at first", () => {
  begun([{ at: 5, rate: 2 }], 0, 1);
  assert.deepEqual(edits.settingsAt(4), { rate: 1 });
  assert.deepEqual(edits.settingsAt(5), { rate: 2 });
});

test("a panel that says what is in force changes nothing", () => {
  begun([{ at: 5, rate: 2 }], 7, 2);
  edits.commit();
  assert.deepEqual(heard, []);
});

test("a setting acts after the step shown and drops the changes after it", () => {
  begun(
    [
      { at: 5, rate: 2 },
      { at: 20, rate: 9 },
    ],
    8,
    4,
  );
  edits.commit();
  assert.deepEqual(player.clock.state.changes, [
    { at: 5, rate: 2 },
    { at: 8, rate: 4 },
  ]);
  assert.ok(heard.some((h) => JSON.stringify(h) === '["fork",9]'));
  assert.equal(player.view.pressed.value, null);
});

test("at the first step the setting is the state's own", () => {
  begun([{ at: 5, rate: 2 }], 0, 4);
  edits.commit();
  assert.deepEqual(player.clock.state, { rate: 4, seed: 3, changes: [] });
});

test("a setting put back takes the change of this step out again", () => {
  begun([{ at: 8, rate: 4 }], 8, 1);
  edits.commit();
  assert.deepEqual(player.clock.state.changes, []);
});

test("one change too many for a link starts again with these settings, and says so", () => {
  begun(
    [2, 4, 6].map((at) => ({ at, rate: at })),
    8,
    5,
  );
  edits.commit();
  assert.deepEqual(player.clock.state, { rate: 5, seed: 3, changes: [] });
  assert.deepEqual(
    heard.find((h) => Array.isArray(h)),
    ["renew", 0],
  );
  assert.match(String(heard.at(-1)), /^A link stores at most 3 changes/);
});

test("another start keeps the panel's settings, and nothing of the way", () => {
  begun([{ at: 5, rate: 2 }], 8, 7);
  edits.restart({ seed: 11 });
  assert.deepEqual(player.clock.state, { rate: 7, seed: 11, changes: [] });
  assert.equal(player.idle, false);
});
