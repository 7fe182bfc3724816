import assert from "node:assert/strict";
import { test } from "node:test";
import type { Columns, Filters } from "../../../../assets/src/inspection/explore/facets.ts";
import type { Look } from "../../../../assets/src/inspection/explore/types.ts";
import {
  NOWHERE,
  failures,
  filtered,
  readTags,
  sortedRows,
  tally,
} from "../../../../assets/src/inspection/explore/facets.ts";
import { marked } from "../../../../assets/src/inspection/explore/cloud.ts";

const LOOK: Filters = {
  classes: [],
  right: [],
  rank: [],
  hubness: [],
  doubted: [],
  split: [],
  meta: [],
  tags: [],
};

// Ten points of two classes, labels 4 and 9; every third is wrong.
function facetsOf() {
  const cloud = {
    count: 10,
    group: Uint8Array.from({ length: 10 }, (_, i) => i % 2),
    indices: Int32Array.from({ length: 10 }, (_, i) => 100 - i),
    classes: [4, 9].map((label) => ({ label, name: "", row: 0, count: 5, colour: "" })),
  };
  const columns: Columns = {
    right: {
      values: Uint8Array.from({ length: 10 }, (_, i) => (i === 9 ? NOWHERE : Number(i % 3 > 0))),
    },
    rank: {
      values: new Uint8Array(10),
      fine: Uint16Array.from([1, 9, 1, 300, 2, 1, 1, 1, 1, 0]),
    },
  };
  const tags = readTags(
    {
      names: ["a", "b"],
      bits: Uint8Array.from([...marked(10, [1, 2]), ...marked(10, [2, 8])]),
    },
    10,
  );
  const fails = (look: Partial<Filters>) => failures(cloud, columns, tags, { ...LOOK, ...look });
  const counts = (look: Partial<Filters>, mask: Uint8Array | null = null) =>
    tally(cloud, columns, tags, fails(look), mask);
  return { cloud, columns, tags, fails, counts };
}
const passing = (facets: ReturnType<typeof facetsOf>, look: Partial<Filters>) =>
  [...facets.fails(look)].flatMap((fails, i) => (fails ? [] : [i]));

test("without filters everything passes", () => {
  assert.equal(passing(facetsOf(), {}).length, 10);
  assert.equal(filtered(LOOK), false);
  assert.equal(filtered({ ...LOOK, tags: ["a"] }), true);
});

test("filters of different columns hold together, values of one are alternatives", () => {
  const facets = facetsOf();
  assert.deepEqual(passing(facets, { classes: [9] }), [1, 3, 5, 7, 9]);
  assert.deepEqual(passing(facets, { classes: [9], right: [0] }), [3]);
  assert.deepEqual(passing(facets, { right: [0, 1] }), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(passing(facets, { tags: ["a", "b"] }), [1, 2, 8]);
  assert.deepEqual(passing(facets, { tags: ["gone"] }).length, 10);
});

test("a count says what its choice would show beside all other filters", () => {
  const facets = facetsOf(),
    look = { ...LOOK, classes: [9], tags: ["b"] },
    counts = facets.counts(look);
  for (const code of [0, 1]) {
    assert.equal(counts.right[code], passing(facets, { ...look, right: [code] }).length);
    const label = [4, 9][code];
    assert.equal(counts.classes[code], passing(facets, { ...look, classes: [label] }).length);
  }
  assert.deepEqual(counts.tags, [1, 0]);
  const mask = Uint8Array.from({ length: 10 }, (_, i) => Number(i < 2));
  assert.deepEqual(Array.from(facets.counts({}, mask).classes), [1, 1]);
});

test("metadata columns filter by categories and by intervals", () => {
  const facets = facetsOf();
  facets.columns["meta-0"] = { values: Uint8Array.from({ length: 10 }, (_, i) => i % 3) };
  facets.columns["meta-19"] = {
    values: Uint8Array.from({ length: 10 }, (_, i) => (i ? 20 * i : NOWHERE)),
  };
  assert.deepEqual(passing(facets, { meta: ["0-1"] }), [1, 4, 7]);
  assert.deepEqual(passing(facets, { meta: ["0-1", "0-2"] }), [1, 2, 4, 5, 7, 8]);
  assert.deepEqual(passing(facets, { meta: ["19-40-100"] }), [2, 3, 4, 5]);
  assert.deepEqual(passing(facets, { meta: ["19-255"] }), [0]);
  assert.deepEqual(passing(facets, { meta: ["0-1", "19-40-100"], classes: [4] }), [4]);
  assert.deepEqual(passing(facets, { meta: ["7-1"] }).length, 10, "not loaded yet");
  assert.equal(filtered({ ...LOOK, meta: ["0-1"] }), true);
  const counts = facets.counts({ meta: ["0-1", "19-40-100"] });
  assert.deepEqual(Array.from(counts["meta-0"]).slice(0, 3), [1, 1, 2]);
  assert.equal(counts["meta-19"][NOWHERE], 0);
  assert.equal(counts["meta-19"][140], 1, "an interval counts what its column alone hides");
});

test("the first of several tags colours a point", () => {
  assert.deepEqual([...facetsOf().tags.column.values].slice(0, 3), [NOWHERE, 0, 0]);
});

test("images are ordered by class, by rank or as in the data set", () => {
  const { cloud, columns } = facetsOf(),
    sorted = (sort: Look["sort"]) => [...sortedRows(cloud, columns, sort)];
  assert.deepEqual(sorted("class").slice(0, 6), [0, 2, 4, 6, 8, 1]);
  assert.deepEqual(sorted("rank").slice(0, 3), [3, 1, 4]);
  assert.deepEqual(sorted("sample").slice(0, 3), [9, 8, 7]);
  assert.equal(sorted("hubness").length, 10, "a column that is not there yet orders nothing");
});
