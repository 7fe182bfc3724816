import assert from "node:assert/strict";
import { test } from "node:test";
import { leftMargin } from "../../../../assets/src/losses/charges/draw.ts";

test("the name of an axis does not cross the numbers at it", () => {
  const width = (/** @type {string} */ text) => 6.4 * text.length,
    ctx = { measureText: (/** @type {string} */ text) => ({ width: width(text) }) };
  for (const number of ["0.75", "0.625", "1.5"]) {
    // numbers end 5 px before the axis
    const begins = leftMargin(ctx, ["0", number]) - 5 - width(number);
    // the title: 12 px, centred at 11
    assert.ok(begins >= 11 + 12 / 2, `${number} begins at ${begins}`);
  }
});
