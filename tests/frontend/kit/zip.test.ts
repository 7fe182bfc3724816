import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { zipArchive } from "../../../assets/src/kit/zip.ts";

const READ = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    assert archive.testzip() is None
    for item in archive.infolist():
        print(item.filename, archive.read(item).decode())
`;

test("Python reads the archive", async () => {
  const entries = [
      ["a/1.png", "first"],
      ["b/ü.png", "second"],
      ["empty.png", ""],
      ["last.png", "second"],
    ],
    archive = zipArchive(),
    folder = mkdtempSync(join(tmpdir(), "zip-"));
  for await (const [path, text] of entries) await archive.add(path, new Blob([text]));
  const blob = archive.end();
  assert.equal(blob.type, "application/zip");
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
});
