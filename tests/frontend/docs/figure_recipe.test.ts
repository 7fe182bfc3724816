// The recipe "A figure" of docs/recipes.md works as printed.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, test } from "node:test";

const root = resolve(import.meta.dirname, "../../.."),
  folder = mkdtempSync(join(tmpdir(), "recipe-"));
after(() => rmSync(folder, { recursive: true }));

// Write the TypeScript blocks of the recipes to the files that their first lines name.
const files = [
  ...readFileSync(join(root, "docs/recipes.md"), "utf8").matchAll(/^( *)```ts\n([^]*?)^ *```$/gm),
].map(([, indent, block]) => {
  const code = block.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    path = join(folder, code.split("\n", 1)[0].replace("// ", ""));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, code);
  return path;
});

test("both files fit the types of the kernel", () => {
  assert.equal(files.length, 2);
  const project = join(folder, "tsconfig.json");
  writeFileSync(
    project,
    JSON.stringify({
      extends: join(root, "tsconfig.json"),
      compilerOptions: { rootDirs: [join(root, "assets/src"), join(folder, "assets/src")] },
      include: [],
      files: [...files, join(root, "assets/src/kit/figure/svgcanvas.d.ts")],
    }),
  );
  execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", project], {
    stdio: "pipe",
    encoding: "utf8",
  });
});

test("the numbers of its figure are right", async () => {
  const { histogram, shareBelow } = await import(files[0]);
  assert.deepEqual(histogram([0.1, 0.6, 0.7, 2], 4, 2), [1, 2, 0, 1]);
  assert.equal(shareBelow([0.1, 0.6, 0.7, 2], 0.7), 0.5);
});
