import assert from "node:assert/strict";
import { test } from "node:test";
import { gather, walk } from "../../../assets/src/training/image_upload/files.ts";

const LIMITS = { suffixes: ["jpg", "png"], megabytes: 1 };
const given = (/** @type {string[]} */ ...paths) =>
  paths.map((path) => ({ path, file: new Blob(["12"]) }));
const paths = (/** @type {string[]} */ ...all) =>
  gather(given(...all), LIMITS).entries.map((entry) => entry.path);

test("only visible images are kept, below their common folder", () => {
  assert.deepEqual(paths("top/a/1.PNG", "top/b/1.jpg", "top/.x/2.png", "top/note.txt"), [
    "a/1.PNG",
    "b/1.jpg",
  ]);
  assert.deepEqual(paths("a/1.png", "b/1.png", "__MACOSX/1.png"), ["a/1.png", "b/1.png"]);
  assert.deepEqual(paths("1.png"), ["1.png"]);
  assert.equal(gather(given("top/1.png"), LIMITS).name, "top");
  assert.equal(gather(given("1.png", "2.png"), LIMITS).name, "images");
});

test("what cannot be uploaded is refused before it is read", () => {
  assert.match(gather(given("a.txt"), LIMITS).refusal, /No images here \(jpg, png\)/);
  const large = [{ path: "a.png", file: new Blob([new Uint8Array(2 ** 20 + 1)]) }];
  assert.match(gather(large, LIMITS).refusal, /2 MB of images; the limit is 1 MB/);
  const many = given(...Array.from({ length: 65536 }, (_, i) => `${i}.png`));
  assert.match(
    gather(many, { ...LIMITS, megabytes: 200 }).refusal,
    /65,536 images; the limit is 65,535/,
  );
  assert.equal(gather(given("a.png"), LIMITS).refusal, "");
});

test("dropped folders are listed completely", async () => {
  const file = (/** @type {string} */ path) => ({
      isFile: true,
      fullPath: path,
      file: (/** @type {(file: Blob) => void} */ resolve) => resolve(new Blob()),
    }),
    batches = [[file("/top/1.png")], [file("/top/2.png")], []],
    folder = {
      isFile: false,
      createReader: () => ({
        readEntries: (/** @type {(entries: unknown[]) => void} */ resolve) =>
          resolve(batches.shift() ?? []),
      }),
    },
    found = await walk(/** @type {any} */ ([folder, file("/3.png"), null]));
  assert.deepEqual(
    found.map((entry) => entry.path),
    ["top/1.png", "top/2.png", "3.png"],
  );
});
