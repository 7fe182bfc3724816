// Effect of one step of each loss on the ranks of the query: a sortable table with the best value
// of each column marked, below a sentence that names the best loss. Python judges.
import type { FailureNumbers, Sorting, SortKey, Step } from "./types.ts";
import { el, setText, show } from "../../kit/dom.ts";

// fresh: losses of the last answer
export type Shown = FailureNumbers & { fresh: Set<string> };

export const count = (x: number) => x.toLocaleString("en");
export const percent = (x: number) => (100 * x).toFixed(1);
const COLUMNS: [key: SortKey, text: string, help: string, first: Sorting["way"]][] = [
  ["loss", "loss", "name", 1],
  ["force", "force", "length of the largest force", -1],
  ["right", "rank of P", "rank of the right neighbour: lower is better", 1],
  ["wrong", "rank of N", "rank of the wrong neighbour: higher is better", -1],
  ["ap", "AP@R, %", "average precision of this query: higher is better", -1],
];
const BEST = " ★";

// Return loss names sorted by a column: numerically, infinite forces as largest, missing ones as
// smallest; ties keep their order.
export function sortLosses(
  losses: [name: string, title: string][],
  steps: Record<string, Step>,
  by: Sorting | null,
) {
  if (!by) return losses.map(([name]) => name);
  const value = (name: string) => {
    const step = steps[name];
    if (!step) return by.way * Infinity; // unknown yet: last in both directions
    if (by.key === "force") return step.active ? (step.force ?? Infinity) : 0;
    return step[by.key as "right" | "wrong" | "ap"];
  };
  return losses
    .toSorted(([a, one], [b, other]) => {
      if (by.key === "loss") return by.way * one.localeCompare(other);
      const [x, y] = [value(a), value(b)];
      return x === y ? 0 : by.way * (x < y ? -1 : 1);
    })
    .map(([name]) => name);
}

export class StepTable {
  losses: [name: string, title: string][];
  best: HTMLElement;
  verdict: HTMLParagraphElement;
  judged: HTMLSpanElement;
  rows: { [k: string]: { row: HTMLTableRowElement; cells: { [k: string]: HTMLTableCellElement } } };
  heads: HTMLTableCellElement[];
  body: HTMLTableSectionElement;
  table: HTMLTableElement;
  by: Sorting | null = null;
  shown: Shown | undefined;

  constructor(losses: [name: string, title: string][], draw: (loss: string) => void) {
    this.losses = losses;
    this.best = el("strong");
    this.verdict = el("p", { class: "verdict", role: "status" }, this.best);
    this.judged = el("span");
    this.rows = Object.fromEntries(
      losses.map(([name, title]) => {
        const cells = Object.fromEntries(
            COLUMNS.slice(1).map(([key]) => [key, el("td", { "data-cell": key })]),
          ),
          choose = el("button", { title: `Draw ${title}`, onclick: () => draw(name) }, title),
          head = el("th", { scope: "row" }, choose);
        return [
          name,
          { row: el("tr", { "data-loss": name }, head, ...Object.values(cells)), cells },
        ];
      }),
    );
    this.heads = COLUMNS.map(([key, text, help]) => {
      const sort = el("button", { title: `Sort by ${help}`, onclick: () => this.sort(key) }, text);
      return el("th", { scope: "col", "data-sort": key }, sort);
    });
    this.body = el("tbody", {}, ...Object.values(this.rows).map((r) => r.row));
    this.table = el(
      "table",
      { class: "numbers steps" },
      el("thead", {}, el("tr", {}, ...this.heads)),
      this.body,
    );
  }

  // Sort by a column: best first, then reversed, then the original order.
  sort(key: SortKey) {
    const first = COLUMNS.find(([other]) => other === key)?.[3] ?? 1,
      { by } = this;
    if (by?.key !== key) this.by = { key, way: first };
    else this.by = by.way === first ? { key, way: -first as 1 | -1 } : null;
    this.arrange();
  }

  arrange() {
    for (const head of this.heads) {
      const way = head.dataset.sort === this.by?.key ? this.by?.way : 0;
      if (way) head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    const wanted = sortLosses(this.losses, this.shown?.steps ?? {}, this.by),
      now = [...this.body.children].map((row) => (row as HTMLElement).dataset.loss);
    if (wanted.every((name, i) => name === now[i])) return;
    const root = this.body.getRootNode() as ShadowRoot | Document,
      focused = root.activeElement as HTMLElement | null; // moved rows lose it
    this.body.append(...wanted.map((name) => this.rows[name].row));
    if (focused && this.body.contains(focused)) focused.focus({ preventScroll: true });
  }

  // Update the table.
  // drawn: loss that is drawn
  // busy: true during a gesture: rows keep their positions
  tell(f: Shown, drawn: string, busy: boolean) {
    this.shown = f;
    this.verdict.classList.toggle("stale", !f.best);
    if (f.best) {
      setText(this.best, f.best.verdict);
      setText(this.judged, f.best.judged);
    }
    for (const [name, { row, cells }] of Object.entries(this.rows)) {
      const step = f.steps[name];
      if (!step) continue;
      row.classList.toggle("drawn", name === drawn);
      row.classList.toggle("stale", !f.fresh.has(name));
      row.classList.toggle("idle", !step.active);
      setText(
        cells.force,
        step.active ? show(step.force) : step.satisfied ? "satisfied" : "clamped",
      );
      this.cell(f, name, "right", -1, count);
      this.cell(f, name, "wrong", 1, count);
      this.cell(f, name, "ap", 1, percent);
    }
    if (!busy) this.arrange();
  }

  cell(
    { now, steps, best }: Shown,
    name: string,
    key: "right" | "wrong" | "ap",
    better: 1 | -1,
    text: (value: number) => string,
  ) {
    const cell = this.rows[name].cells[key],
      step = steps[name],
      same = step[key] === now[key],
      good = better * (step[key] - now[key]) > 0,
      leads = best?.leaders[key].includes(name) ?? false,
      to = text(step[key]);
    cell.className = [same ? "" : good ? "good" : "bad", leads ? "best" : ""].join(" ").trim();
    cell.title = leads ? "Best in its column" : "";
    setText(cell, same ? to : `${to} ${good ? "✓" : "✗"}${leads ? BEST : ""}`);
  }
}
