// Column next to the plane of a real triplet: the effect of one step of each loss on the ranks of
// the query, and how it is computed.
import type { FailureData, Way } from "./types.ts";
import type { Shown } from "./step_table.ts";
import { LETTER, POINTS } from "../../kit/colours.ts";
import { control } from "../../kit/controls.ts";
import { el, setText, still } from "../../kit/dom.ts";
import { StepTable, count, percent } from "./step_table.ts";

const WAYS: Record<Way, [text: string, rule: string]> = {
  length: ["step length δ", "Each loss moves its farthest point by δ, regardless of its gradient"],
  rate: [
    "rate η",
    "Each loss moves each point by η times its gradient, so this mostly compares gradient sizes",
  ],
};
const PARTS = [
  ["", ""],
  ["length", "length of the force"],
  ["in plane", "length of the component in the plane, which is drawn"],
  ["off plane", "component normal to the plane; only for losses that depend on norms"],
  [
    "radial",
    "component along the embedding of the point (outward positive), which normalisation removes",
  ],
  ["tangential", "length of the component that moves the point along the sphere"],
];
const TABLE =
  "★ marks the best value of a column. Click a header to sort the table or a loss to draw it.";

// Scroll to the true step, which Streamlit renders below the plane.
const trueStep = () => {
  const head = document.querySelector(".st-key-true_step_head") as HTMLElement | null;
  if (!head) return;
  head.style.scrollMarginTop = "4.5rem"; // space for the menu on top
  head.scrollIntoView({ behavior: still() ? "auto" : "smooth" });
};
const number = (x: number | null) => (x === null ? "∞" : Math.abs(x) < 5e-5 ? "0" : x.toFixed(3));

/** Size of the step and what it means, as the visitor set them. */
export interface StepSize {
  rate: number;
  by: Way;
}

export class Ranks {
  readonly root: HTMLDivElement;
  private readonly stepBox = el("div", { class: "step" });
  private readonly now = el("p", { class: "now", role: "status" });
  private readonly rule = el("p", { class: "rule" });
  private readonly last = el("strong");
  private readonly lastText = el("span");
  private readonly lastWord = el(
    "p",
    { class: "verdict last-word", role: "status" },
    this.last,
    " ",
    this.lastText,
    " ",
    el("button", { class: "link", onclick: trueStep }, "an actual training step ↓"),
  );
  private readonly parts = el("table", { class: "numbers parts" });
  private readonly searched = el("span");
  private readonly exact = el("ul", { class: "exact" });
  private readonly steps: StepTable;

  /** `draw` is called with the loss that the visitor chooses in the table. */
  constructor(losses: [name: string, title: string][], draw: (loss: string) => void) {
    this.steps = new StepTable(losses, draw);
    this.root = el(
      "div",
      { class: "ranks" },
      el(
        "section",
        {},
        el("h3", {}, "After one step of each loss"),
        this.now,
        this.stepBox,
        this.rule,
        this.steps.verdict,
        this.lastWord,
        this.steps.table,
        el("p", { class: "caption" }, TABLE),
      ),
      el(
        "details",
        { class: "section method" },
        el("summary", {}, "Method"),
        el(
          "p",
          {},
          "The step moves only A, P and N, and ranks them among ",
          this.searched,
          " samples. ",
          this.steps.judged,
        ),
        el("h4", {}, "Components of each force"),
        this.parts,
        el("h4", {}, "Why this figure is exact"),
        this.exact,
      ),
    );
  }

  /**
   * Show the size of the step. It is changed in place, then `moved` is called, at the end of a
   * gesture with true.
   */
  showSize(size: StepSize, data: FailureData, moved: (rests: boolean) => void): void {
    const [low, high] = data.rates,
      [, rule] = WAYS[size.by];
    setText(this.rule, `${rule}.${data.circle ? " Points stay on the unit sphere." : ""}`);
    this.steps.verdict.classList.toggle("by-rate", size.by === "rate");
    const pill = (way: Way) =>
      el(
        "button",
        {
          "aria-pressed": String(way === size.by),
          onclick: () => {
            size.by = way;
            this.showSize(size, data, moved);
            moved(true);
          },
        },
        WAYS[way][0],
      );
    const about = {
      name: "step size",
      symbol: size.by === "rate" ? "η" : "δ",
      help: `${rule}.`,
      low,
      high,
      log: true,
      default: size.rate,
    };
    const slider = control(about, size.rate, {
      onInput: (x: number) => {
        size.rate = Math.min(Math.max(x, low), high);
        moved(false);
      },
      onRest: () => moved(true),
    });
    this.stepBox.replaceChildren(
      slider,
      el(
        "div",
        { class: "pills", role: "group", "aria-label": "equal for all losses" },
        el("span", { "aria-hidden": "true" }, "Equal"),
        ...(Object.keys(WAYS) as Way[]).map(pill),
      ),
    );
  }

  /** Show the numbers of an answer; `drawn`: the loss of the plane; `busy`: during a gesture. */
  update(f: Shown, drawn: string, busy: boolean): void {
    const { now, data } = f,
      was = (key: "right" | "wrong" | "ap", text = count) =>
        f.moved ? ` (was ${text(data[key])})` : "";
    setText(
      this.now,
      `Now: P at rank ${count(now.right)}${was("right")}, N at rank ${count(now.wrong)}${was("wrong")}, AP@R ${percent(now.ap)} %${was("ap", (x) => `${percent(x)} %`)}.`,
    );
    setText(this.searched, count(f.searched));
    this.steps.tell(f, drawn, busy);
    this.parts.replaceChildren(
      el("tr", {}, ...PARTS.map(([text, title]) => el("th", { scope: "col", title }, text))),
      ...POINTS.map((name, i) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, LETTER[name]),
          ...(["size", "in", "off", "radial", "tangential"] as const).map((k) =>
            el("td", { "data-part": k }, number(f.parts[k][i])),
          ),
        ),
      ),
    );
    this.exact.replaceChildren(...f.words.map((text) => el("li", {}, text)));
  }

  /** Show the verdict of the true step, once it was taken. */
  showTrueStep({ last_word, trained }: FailureData): void {
    this.lastWord.hidden = !trained; // no network, so no true step
    this.lastWord.classList.toggle("known", Boolean(last_word));
    this.steps.verdict.classList.toggle("outranked", Boolean(last_word));
    setText(this.last, last_word ? `True step: ${last_word}` : "");
    setText(
      this.lastText,
      last_word
        ? "The table moves only three embeddings. Compare it with"
        : "An estimate; check it with",
    );
  }
}
