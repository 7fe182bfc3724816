import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { crc32 as expected } from "node:zlib";
import { crc32, zip } from "../../../assets/src/training/image_upload/zip.ts";

const READ = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    assert archive.testzip() is None
    for item in archive.infolist():
        print(item.filename, archive.read(item).decode())
`;

test("checksums are CRC-32", () => {
  for (const text of ["", "a", "123456789", "é".repeat(1000)]) {
    const bytes = new TextEncoder().encode(text);
    assert.equal(crc32(bytes), expected(bytes));
  }
});

test("Python reads the archive", async () => {
  const entries = [
      ["a/1.png", "first"],
      ["b/ü.png", "second"],
      ["empty.png", ""],
    ],
    /** @type {number[]} */
    done = [],
    blob = await zip(
      entries.map(([path, text]) => ({ path, file: new Blob([text]) })),
      (count) => done.push(count),
    ),
    folder = mkdtempSync(join(tmpdir(), "zip-"));
  try {
    writeFileSync(join(folder, "a.zip"), new Uint8Array(await blob.arrayBuffer()));
    const read = execFileSync("python3", ["-c", READ, join(folder, "a.zip")], {
      encoding: "utf8",
      env: { ...process.env, PYTHONIOENCODING: "utf-8" },
    });
    assert.equal(read, entries.map((entry) => `${entry.join(" ")}\n`).join(""));
  } finally {
    rmSync(folder, { recursive: true });
  }
  assert.deepEqual(done, [1, 2, 3]);
});
