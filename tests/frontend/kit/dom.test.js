import assert from "node:assert/strict";
import { test } from "node:test";
import { onward } from "../../../assets/src/kit/dom.ts";

test("how pages are shown goes along to another one, and what they show does not", () => {
  Object.assign(globalThis, { location: { search: "?mu=0.3&hide=m1,m2&socket=off&present=1" } });
  assert.equal(onward("/runs", ""), "/runs?hide=m1%2Cm2&socket=off&present=1");
  assert.equal(onward("/b", "mu=0.2&hide=n"), "/b?mu=0.2&hide=n&socket=off&present=1");
  Object.assign(globalThis, { location: { search: "?mu=0.3" } });
  assert.equal(onward("/runs", ""), "/runs");
  assert.equal(onward("/b", "mu=0.2"), "/b?mu=0.2");
});
