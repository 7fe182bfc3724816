// Builds what the app serves: assets/src → assets/built, JavaScript and CSS at the same relative
// addresses, and the table of npm packages in docs/licences.md. "node assets/build.js --check"
// writes nothing and fails if assets/built is stale.
import { build } from "esbuild";
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { customProperties } from "./src/kit/colours.ts";
import { basename, dirname, join, relative } from "node:path";
import { licenceTexts, shippedPackages, withTable } from "./licences.js";

const root = import.meta.dirname,
  out = join(root, "built");
// A module named after its folder is an entry: a component that Python mounts, or a part that is
// loaded later. inline.ts is added to a page as text.
const isEntry = (file) =>
  [basename(dirname(file)), "inline"].includes(basename(file).replace(/\.tsx?$/, ""));
// @import "palette.css" stands for the colours of dmlcore/figures/palette.json as custom properties.
const palette = {
  name: "palette",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^palette\.css$/ }, () => ({ path: "palette.css", namespace: "palette" }));
    onLoad({ filter: /.*/, namespace: "palette" }, () => ({
      contents: `:root{${customProperties()}}`,
      loader: "css",
    }));
  },
};
// Packages have no part in the source maps: an empty map stands for theirs, as esbuild advises.
const NO_MAP = `\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(
  '{"version":3,"sources":["package"],"sourcesContent":[""],"mappings":"AAAA"}',
).toString("base64")}`;
const unmapped = {
  name: "unmapped",
  setup({ onLoad }) {
    onLoad({ filter: /node_modules\/.*\.m?js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(/^\/\/# sourceMappingURL=.*/m, "") + NO_MAP,
    }));
  },
};
const { outputFiles, metafile } = await build({
  entryPoints: globSync("src/**/*.{ts,tsx,css}", { cwd: root })
    .filter((file) => (file.endsWith(".css") && !file.endsWith("tokens.css")) || isEntry(file))
    .map((file) => join(root, file)),
  outbase: join(root, "src"),
  outdir: out,
  chunkNames: "chunks/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2024",
  minify: true,
  sourcemap: true,
  legalComments: "inline",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  plugins: [palette, unmapped],
  external: ["canvg", "dompurify", "html2canvas"], // for parts of jsPDF that are not used
  write: false,
  metafile: true,
});
const packages = shippedPackages(metafile, process.cwd());
outputFiles.push({
  path: join(out, "licences.txt"),
  contents: Buffer.from(licenceTexts(packages)),
});

if (process.argv.includes("--check")) {
  const there = globSync("**/*.*", { cwd: out }),
    made = new Map(outputFiles.map(({ path, contents }) => [relative(out, path), contents]));
  const stale = [...new Set([...there, ...made.keys()])].filter(
    (name) =>
      !there.includes(name) ||
      !made.has(name) ||
      Buffer.compare(readFileSync(join(out, name)), made.get(name)),
  );
  if (stale.length) {
    console.error(`assets/built is stale (${stale.length} files): run "npm run build"`);
    process.exit(1);
  }
} else {
  rmSync(out, { recursive: true, force: true });
  for (const { path, contents } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, contents);
  }
  const page = join(root, "../docs/licences.md");
  writeFileSync(page, withTable(readFileSync(page, "utf8"), packages));
}
