// Effect of one step of each loss on the ranks of the query: a sortable table with the best value
// of each column marked, below a sentence that names the best loss. Python judges.
/** @import { FailureNumbers, Sorting, SortKey, Step } from "./types.js" */
import { el, setText, show } from "../../kit/dom.js";

/** @typedef {FailureNumbers & { fresh: Set<string> }} Shown fresh: losses of the last answer */

/** @param {number} x */
export const count = (x) => x.toLocaleString("en");
/** @param {number} x */
export const percent = (x) => (100 * x).toFixed(1);
/** @type {[key: SortKey, text: string, help: string, first: Sorting["way"]][]} */
const COLUMNS = [
  ["loss", "loss", "name", 1],
  ["force", "force", "length of the largest force", -1],
  ["right", "rank of P", "rank of the right neighbour: lower is better", 1],
  ["wrong", "rank of N", "rank of the wrong neighbour: higher is better", -1],
  ["ap", "AP@R, %", "average precision of this query: higher is better", -1],
];
const BEST = " ★";

// Return loss names sorted by a column: numerically, infinite forces as largest, missing ones as
// smallest; ties keep their order.
/**
 * @param {[name: string, title: string][]} losses
 * @param {Record<string, Step>} steps
 * @param {Sorting | null} by
 */
export function sortLosses(losses, steps, by) {
  if (!by) return losses.map(([name]) => name);
  const value = (/** @type {string} */ name) => {
    const step = steps[name];
    if (!step) return by.way * Infinity; // unknown yet: last in both directions
    if (by.key === "force") return step.active ? (step.force ?? Infinity) : 0;
    return step[/** @type {"right" | "wrong" | "ap"} */ (by.key)];
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
  /** @type {Sorting | null} */
  by = null;
  /** @type {Shown | undefined} */
  shown;

  /**
   * @param {[name: string, title: string][]} losses
   * @param {(loss: string) => void} draw
   */
  constructor(losses, draw) {
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
  /** @param {SortKey} key */
  sort(key) {
    const first = COLUMNS.find(([other]) => other === key)?.[3] ?? 1,
      { by } = this;
    if (by?.key !== key) this.by = { key, way: first };
    else this.by = by.way === first ? { key, way: /** @type {1 | -1} */ (-first) } : null;
    this.arrange();
  }

  arrange() {
    for (const head of this.heads) {
      const way = head.dataset.sort === this.by?.key ? this.by?.way : 0;
      if (way) head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    const wanted = sortLosses(this.losses, this.shown?.steps ?? {}, this.by),
      now = [...this.body.children].map((row) => /** @type {HTMLElement} */ (row).dataset.loss);
    if (wanted.every((name, i) => name === now[i])) return;
    const root = /** @type {ShadowRoot | Document} */ (this.body.getRootNode()),
      focused = /** @type {HTMLElement | null} */ (root.activeElement); // moved rows lose it
    this.body.append(...wanted.map((name) => this.rows[name].row));
    if (focused && this.body.contains(focused)) focused.focus({ preventScroll: true });
  }

  /**
   * Update the table.
   *
   * @param {Shown} f
   * @param {string} drawn loss that is drawn
   * @param {boolean} busy true during a gesture: rows keep their positions
   */
  tell(f, drawn, busy) {
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

  /**
   * @param {Shown} f
   * @param {string} name
   * @param {"right" | "wrong" | "ap"} key
   * @param {1 | -1} better
   * @param {(value: number) => string} text
   */
  cell({ now, steps, best }, name, key, better, text) {
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
