// Licences of the npm packages that are part of assets/built.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

// Return a text: one line per package with name, version, licence and home page, then the texts of
// the licences. `metafile` is esbuild's; `root` is the folder of its paths.
export function licences({ outputs }, root) {
  const folders = new Set();
  for (const { inputs } of Object.values(outputs))
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const [folder] = path.match(/^.*node_modules\/(@[^/]+\/)?[^/]+/) ?? [];
      if (folder && bytesInOutput) folders.add(folder);
    }
  const packages = [...folders]
    .map((folder) => ({
      ...JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")),
      text: readFileSync(globSync(join(root, folder, "LICEN[CS]E*"))[0], "utf8").trim(),
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [
    "Packages of npm in the JavaScript of this folder: name, version, licence, home page.\n\n",
    ...packages.map(({ name, version, license, homepage, repository }) => {
      const home = homepage ?? repository?.url ?? repository;
      return `${name} | ${version} | ${license} | ${home}\n`;
    }),
    ...packages.map(({ name, text }) => `\n\n======== ${name} ========\n\n${text}\n`),
  ].join("");
}
