// Licences of the npm packages that are part of assets/built.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

// Return name, version, licence, home page and the text of the licence of each package in what
// esbuild has built. `root` is the folder of the paths in esbuild's `metafile`.
export function shippedPackages({ outputs }, root) {
  const folders = new Set();
  for (const { inputs } of Object.values(outputs))
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const [folder] = path.match(/^(?!\(disabled\)).*node_modules\/(@[^/]+\/)?[^/]+/) ?? [];
      if (folder && bytesInOutput) folders.add(folder);
    }
  const packages = [...folders].map((folder) => {
    const about = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")),
      { name, version, license, homepage, repository } = about,
      home = homepage ?? repository?.url ?? repository,
      text = readFileSync(globSync(join(root, folder, "LICEN[CS]E*"))[0], "utf8").trim();
    return { name, row: `${name} | ${version} | ${license} | ${home}`, text };
  });
  return packages.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

// Return a text: one line per package, then the texts of the licences.
export const licenceTexts = (packages) =>
  [
    "Packages of npm in the JavaScript of this folder: name, version, licence, home page.\n\n",
    ...packages.map(({ row }) => `${row}\n`),
    ...packages.map(({ name, text }) => `\n\n======== ${name} ========\n\n${text}\n`),
  ].join("");

// Return a page with the table of npm packages, its last part, replaced.
export const withTable = (page, packages) =>
  page.replace(
    /(\n\| npm package .*\n\|[-|]*\n)[^]*$/,
    (_, head) => head + packages.map(({ row }) => `| ${row} |\n`).join(""),
  );
