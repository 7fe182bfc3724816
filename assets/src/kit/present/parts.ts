// Parts of pages that can be shown next to the figure in presentation mode: name in the address,
// title, and selector. One table serves all pages; parts that a page lacks are not offered.

export type Part = { name: string; title: string; selector: string };

// Selectors without :has(), because stage.js evaluates them one by one.
const PARTS: Part[] = [
  { name: "presets", title: "presets", selector: ".try, .lessons, .top" },
  { name: "loss", title: "loss", selector: 'select[aria-label^="loss"]' },
  { name: "formula", title: "formula", selector: ".panel .formula" },
  { name: "points", title: "points", selector: ".points" },
  { name: "shown", title: "what is shown", selector: ".panel .switches" },
  { name: "time", title: "time", selector: ".transport, .player" },
  { name: "key", title: "colours and lines", selector: ".left > .below" },
  { name: "numbers", title: "numbers", selector: ".left .readout, .left .numbers" },
  { name: "explanation", title: "explanation", selector: ".stage > .explain:not(.below-all)" },
  { name: "curves", title: "curves", selector: ".middle .plots, .work .plots" },
  { name: "portrait", title: "phase portrait", selector: ".portrait" },
  { name: "steps", title: "one step of each loss", selector: ".ranks > :first-child" },
  { name: "legend", title: "classes and filters", selector: ".legend" },
  { name: "images", title: "images", selector: ".wall" },
  { name: "tools", title: "tools", selector: ".map-lab > .bar" },
];

// Return the selector of the row of the slider or menu called `name`.
const rowOf = (name: string) => `.control[data-name="${CSS.escape(name)}"]`;

// Return the parts that a page currently has.
export function partsOf(whole: HTMLElement) {
  const rows = [...whole.querySelectorAll(".control[data-name]")].map((row) => {
    const name = row.getAttribute("data-name") ?? "",
      sign = row.querySelector(".symbol")?.textContent?.trim() ?? "";
    return { name, title: sign && sign !== name ? `${sign} (${name})` : name };
  });
  const sliders: Part[] = rows.map((row) => ({ ...row, selector: rowOf(row.name) }));
  return [...PARTS.filter((part) => whole.querySelector(part.selector)), ...sliders];
}

// Return the selectors of the named parts, including parts that appear only with another loss.
export const selectorsOf = (names: string[]) =>
  names.map((name) => PARTS.find((part) => part.name === name)?.selector ?? rowOf(name));
