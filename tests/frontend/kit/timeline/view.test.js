import assert from "node:assert/strict";
import { test } from "node:test";
import { pressKey } from "../../../../assets/src/kit/timeline/view.ts";

test("a key acts, but not on what a control that is held does with it itself", () => {
  const heard = [],
    actions = {
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
