import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { pressKey } from "../../../../assets/src/kit/timeline/view.ts";
import { Player } from "../../../../assets/src/kit/timeline/player.ts";

/** @typedef {{ rate: number, seed: number, changes: { at: number, rate: number }[] }} State */

// Player without elements: its state with changes, and its key handling.
/** @extends {Player<any, any, any, any, { rate: number }>} */
class Bare extends Player {
  get settings() {
    return ["rate"];
  }
}

/** @type {any} */
let player;
/** @type {unknown[]} */
let heard;

/**
 * @param {State["changes"]} changes
 * @param {number} at
 * @param {number} rate of the panel
 */
function begun(changes, at, rate) {
  Object.assign(player, { state: { rate: 1, seed: 3, changes }, at, now: { rate } });
}

beforeEach(() => {
  heard = [];
  player = Object.assign(Object.create(Bare.prototype), {
    options: { limits: { changes: 3, steps: 100 } },
    press: () => heard.push("no preset"),
    data: { idle: true },
    playing: false,
    pending: null,
    onPlayToggled: () => {},
    panel: () => {},
    requestFirst: () => {},
    message: (/** @type {string} */ text) => heard.push(text),
    ask: (/** @type {object} */ what) => heard.push(what),
    fork: (/** @type {State} */ state, /** @type {number} */ from) => {
      player.state = state;
      heard.push(["fork", from]);
    },
    renew: (/** @type {State} */ state, /** @type {number} */ goal) => {
      player.state = state;
      heard.push(["renew", goal]);
    },
  });
});

test("in force at a step is what the last change up to it set, or the state at first", () => {
  begun([{ at: 5, rate: 2 }], 0, 1);
  assert.deepEqual(player.settingsAt(4), { rate: 1 });
  assert.deepEqual(player.settingsAt(5), { rate: 2 });
});

test("a panel that says what is in force changes nothing", () => {
  begun([{ at: 5, rate: 2 }], 7, 2);
  player.commit();
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
  player.commit();
  assert.deepEqual(player.state.changes, [
    { at: 5, rate: 2 },
    { at: 8, rate: 4 },
  ]);
  assert.ok(heard.some((h) => JSON.stringify(h) === '["fork",9]'));
  assert.ok(heard.includes("no preset"));
});

test("at the first step the setting is the state's own", () => {
  begun([{ at: 5, rate: 2 }], 0, 4);
  player.commit();
  assert.deepEqual(player.state, { rate: 4, seed: 3, changes: [] });
});

test("a setting put back takes the change of this step out again", () => {
  begun([{ at: 8, rate: 4 }], 8, 1);
  player.commit();
  assert.deepEqual(player.state.changes, []);
});

test("one change too many for a link starts again with these settings, and says so", () => {
  begun(
    [2, 4, 6].map((at) => ({ at, rate: at })),
    8,
    5,
  );
  player.commit();
  assert.deepEqual(player.state, { rate: 5, seed: 3, changes: [] });
  assert.deepEqual(
    heard.find((h) => Array.isArray(h)),
    ["renew", 0],
  );
  assert.match(String(heard.at(-1)), /^A link stores at most 3 changes/);
});

test("another start keeps the panel's settings, and nothing of the way", () => {
  begun([{ at: 5, rate: 2 }], 8, 7);
  player.restart({ seed: 11 });
  assert.deepEqual(player.state, { rate: 7, seed: 11, changes: [] });
  assert.equal(player.data.idle, false);
});

test("a key acts, but not on what a control that is held does with it itself", () => {
  const actions = {
    " ": () => heard.push("space"),
    End: () => false,
    Home: () => heard.push("home"),
  };
  const press = (/** @type {string} */ key, /** @type {boolean} */ held) => {
    let prevented = false;
    const target = { matches: () => held };
    pressKey(actions, { key, target, preventDefault: () => (prevented = true) });
    return prevented;
  };
  assert.equal(press(" ", false), true);
  assert.equal(press(" ", true), false);
  assert.equal(press("Home", true), true);
  assert.equal(press("End", false), false); // its action declined
  assert.equal(press("x", false), false);
  assert.deepEqual(heard, ["space", "home"]);
});
