// Table of the scores over all samples of the split, next to the rows of Table 4.1.
import type { Published, Table } from "./types.ts";
import { el } from "../../kit/dom.ts";

const cell = (v?: number | null) => el("td", {}, v === null || v === undefined ? "" : v.toFixed(1));

// Return the table. found: scores from the service; names: descriptions of A and B; title(row):
// description of a published row; onUse(side, row) applies a published setting.
export function scoreTable(
  { columns, ours, published, step, samples }: Table,
  names: string[],
  title: (row: Published) => string,
  onUse: (side: number, row: Published) => void,
) {
  const blank = columns.map(() => el("td", {})),
    scores = (s: Record<string, number | null> | null) =>
      s ? columns.map((c) => cell(s[c])) : blank.map((b) => b.cloneNode());
  const has = published.length > 0,
    used = new Set(),
    rows: HTMLElement[] = [];
  ours.forEach((row, i) => {
    const side = i - 2,
      match = published.find((p) => (side < 0 ? p.label === row.label : p.ours.includes(side)));
    if (match) used.add(match);
    rows.push(
      el(
        "tr",
        { class: "ours" },
        el(
          "th",
          { scope: "row" },
          side < 0 ? row.label : el("b", {}, `${row.label}: `),
          side < 0 ? "" : names[side],
        ),
        ...scores(row.scores),
        ...(has ? [...scores(match?.scores ?? null), el("td", {})] : []),
      ),
    );
  });
  for (const p of published) {
    if (used.has(p)) continue;
    const buttons = names.map((_, i) =>
      el(
        "button",
        {
          title: `Train ${"AB"[i]} with this loss from step 0`,
          "aria-label": `Use ${title(p)} for ${"AB"[i]}`,
          onclick: () => onUse(i, p),
        },
        `use as ${"AB"[i]}`,
      ),
    );
    rows.push(
      el(
        "tr",
        {},
        el("th", { scope: "row" }, title(p)),
        ...scores(null),
        ...scores(p.scores),
        el("td", {}, ...(p.loss ? buttons : [])),
      ),
    );
  }
  const head = [
    el(
      "tr",
      {},
      el("td", {}),
      el("th", { colspan: columns.length, scope: "colgroup" }, `ours, step ${step}`),
      ...(has
        ? [
            el("th", { colspan: columns.length, scope: "colgroup" }, "Karaman 2021, Table 4.1"),
            el("td", {}),
          ]
        : []),
    ),
    el(
      "tr",
      {},
      el("th", { scope: "col" }, `${samples.toLocaleString("en")} queries, %`),
      ...columns.map((c) => el("th", { scope: "col" }, c)),
      ...(has ? [...columns.map((c) => el("th", { scope: "col" }, c)), el("td", {})] : []),
    ),
  ];
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "scores" },
    el("table", {}, el("thead", {}, ...head), el("tbody", {}, ...rows)),
  );
}
