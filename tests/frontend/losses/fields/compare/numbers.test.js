import assert from "node:assert/strict";
import { test } from "node:test";
import { number } from "../../../../../assets/src/losses/fields/compare/numbers.ts";

test("differences run from rounding errors to infinity", () => {
  assert.deepEqual(
    [0, 0.25, 1234.56, 0.00123456, 3.2e-16, -4e-9, 5e12, null, undefined].map((x) => number(x)),
    ["0", "0.25", "1235", "0.001235", "3.2·10⁻¹⁶", "-4·10⁻⁹", "5·10¹²", "∞", "∞"],
  );
});
