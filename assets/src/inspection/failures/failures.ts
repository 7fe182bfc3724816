// Plane of a real triplet: that of the Fields page, with images next to the points, the circle of
// the sphere, the end points of one step, and its effect on the ranks of the query. All numbers
// come from Python.
import { asset } from "../../kit/address.ts";
import type { Point } from "../../kit/types.ts";
import type { FailureData, Way } from "./types.ts";
import { defineComponent } from "../../kit/component.ts";
import { control, keyMark } from "../../kit/controls.ts";
import { presentButton } from "../../kit/present/present.ts";
import { el, save, setText, still, styled } from "../../kit/dom.ts";
import { INK, LETTER, POINTS } from "../../kit/colours.ts";
import { reach } from "../../kit/plane/layers.ts";
import { Fields } from "../../kit/plane/plane.ts";
import { StepTable, count, percent } from "./step_table.ts";
import { along, placeThumbnails } from "./thumbnails.ts";

export type Shown = import("./step_table.ts").Shown;

const SVG = "http://www.w3.org/2000/svg";
const put = (node: Element, attributes: Record<string, string | number>) => {
  for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, String(v));
};
const svg = (tag: string, attributes: Record<string, string | number> = {}) => {
  const node = document.createElementNS(SVG, tag) as SVGElement;
  put(node, attributes);
  return node;
};
const WAYS: Record<Way, [text: string, rule: string]> = {
  length: ["step length δ", "Each loss moves its farthest point by δ, regardless of its gradient"],
  rate: [
    "rate η",
    "Each loss moves each point by η times its gradient, so this mostly compares gradient sizes",
  ],
};

// Scroll to the true step, which Streamlit renders below the plane.
const trueStep = () => {
  const head = document.querySelector(".st-key-true_step_head") as HTMLElement | null;
  if (!head) return;
  head.style.scrollMarginTop = "4.5rem"; // space for the menu on top
  head.scrollIntoView({ behavior: still() ? "auto" : "smooth" });
};

class Failure extends Fields<FailureData> {
  rate: number;
  by: Way;
  known: string;
  pending: string[];
  overlay: SVGElement;
  circle: SVGElement;
  ghosts: SVGElement[][];
  thumbs: Record<Point, HTMLImageElement>;
  back: HTMLButtonElement;
  whatIf: HTMLDivElement;
  circleKey: HTMLSpanElement;
  exact: HTMLUListElement;
  stepBox: HTMLDivElement;
  now: HTMLParagraphElement;
  steps: StepTable;
  rule: HTMLParagraphElement;
  last: HTMLElement;
  lastText: HTMLSpanElement;
  lastWord: HTMLParagraphElement;
  parts: HTMLTableElement;
  searched: HTMLSpanElement;
  ranks: HTMLDivElement;
  failure: Shown | undefined;
  get route() {
    return "api/failure";
  }
  get keptParameters() {
    return ["hide", "socket", "selection", "class"];
  }
  get sphere() {
    return this.data.circle;
  }
  extra() {
    return { of: this.data.of, rate: this.rate, by: this.by };
  }
  defaults(loss: string) {
    return loss === this.data.home.loss ? { ...this.data.home.hyper } : super.defaults(loss);
  }

  async build(data: FailureData) {
    this.rate = data.rate;
    this.by = data.by;
    this.known = data.query; // link as Python knows it, or soon will
    this.pending = []; // links that were sent to Python without an answer yet
    await styled(this.root, asset("inspection/failures/failures.css"));
    await super.build(data);
  }

  dom() {
    const whole = super.dom(),
      stage = whole.querySelector(".stage") as HTMLElement;
    this.overlay = svg("svg", { class: "overlay", "aria-hidden": "true" });
    this.circle = svg("circle", { fill: "none", "stroke-width": 1.5, "stroke-dasharray": "2 5" });
    this.ghosts = POINTS.map((name) => [
      svg("line", { "stroke-width": 1.5, "stroke-dasharray": "3 3" }),
      name === "negative"
        ? svg("rect", { width: 12, height: 12, fill: "none", "stroke-width": 2 })
        : svg("circle", { r: 6.5, fill: "none", "stroke-width": 2 }),
    ]);
    this.overlay.append(this.circle, ...this.ghosts.flat());
    this.thumbs = Object.fromEntries(
      POINTS.map((name) => [
        name,
        el("img", { class: `thumb ${name}`, alt: "", draggable: "false" }),
      ]),
    ) as Record<Point, HTMLImageElement>;
    this.canvas.after(...Object.values(this.thumbs), this.overlay);
    this.back = el(
      "button",
      { class: "back", onclick: () => this.put(this.atHome()) },
      "Back to the embeddings",
    );
    this.whatIf = el("div", { class: "what-if" }, el("span", { role: "status" }), this.back);
    this.frame.before(this.whatIf);
    const box = el("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => {
      for (const t of Object.values(this.thumbs)) t.hidden = !box.checked;
    });
    this.circleKey = keyMark("dotted", "unit sphere in this plane");
    this.keys.outer.parentElement?.append(
      keyMark("ghost", "after one step"),
      this.circleKey,
      el("label", { class: "key" }, box, "images"),
      el("button", { class: "png", onclick: () => this.png() }, "PNG"),
      ...presentButton(this),
    );
    this.exact = el("ul", { class: "exact" });
    this.stepBox = el("div", { class: "step" });
    this.now = el("p", { class: "now", role: "status" });
    this.steps = new StepTable(
      Object.entries(this.schema.losses).map(([name, { title }]) => [name, title]),
      (loss) => this.put({ loss, margin: "raw", mu: null }),
    );
    this.rule = el("p", { class: "rule" });
    this.last = el("strong");
    this.lastText = el("span");
    this.lastWord = el(
      "p",
      { class: "verdict last-word", role: "status" },
      this.last,
      " ",
      this.lastText,
      " ",
      el("button", { class: "link", onclick: trueStep }, "an actual training step ↓"),
    );
    this.parts = el("table", { class: "numbers parts" });
    this.searched = el("span");
    this.ranks = el(
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
        el(
          "p",
          { class: "caption" },
          "★ marks the best value of a column. Click a header to sort the table or a loss to draw it.",
        ),
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
    this.explain.side.classList.add("below-all");
    this.explain.side.before(this.ranks);
    this.explain.side.prepend(el("div", {}, this.explain.head, this.explain.values));
    stage.classList.add("with-ranks");
    this.panel.side.before(this.fold(stage, "show-panel", "Loss, points and view"));
    this.ranks.before(this.fold(stage, "show-detail", "Formula and forces"));
    this.stepSlider();
    this.loadStyles();
    return whole;
  }

  // Return a button that opens and closes part of the page on phones.
  fold(stage: HTMLElement, part: "show-panel" | "show-detail", text: string) {
    const button: HTMLButtonElement = el(
      "button",
      {
        class: `fold ${part}`,
        "aria-expanded": "false",
        onclick: () => button.setAttribute("aria-expanded", String(stage.classList.toggle(part))),
      },
      text,
    );
    return button;
  }

  // Motions for recordings; those of the three embeddings are excluded.
  get motions() {
    return [];
  }

  atHome() {
    const { anchor, positive, negative, view } = this.data.home;
    return structuredClone({ anchor, positive, negative, view });
  }
  isHome() {
    return POINTS.every((k) => this.scene[k].every((v, i) => v === this.data.home[k][i]));
  }

  // ---- step: its size and the meaning of the size
  stepSlider() {
    const [low, high] = this.data.rates,
      pill = (way: Way) =>
        el(
          "button",
          {
            "aria-pressed": String(way === this.by),
            onclick: () => {
              this.by = way;
              this.stepSlider();
              this.rest(false);
            },
          },
          WAYS[way][0],
        );
    setText(
      this.rule,
      `${WAYS[this.by][1]}.${this.data.circle ? " Points stay on the unit sphere." : ""}`,
    );
    this.steps.verdict.classList.toggle("by-rate", this.by === "rate");
    const slider = control(
      {
        name: "step size",
        symbol: this.by === "rate" ? "η" : "δ",
        help: `${WAYS[this.by][1]}.`,
        low,
        high,
        log: true,
        default: this.rate,
      },
      this.rate,
      {
        onInput: (x: number) => {
          this.rate = Math.min(Math.max(x, low), high);
          this.touch();
          this.move();
        },
        onRest: () => this.rest(false),
      },
    );
    this.stepBox.replaceChildren(
      slider,
      el(
        "div",
        { class: "pills", role: "group", "aria-label": "equal for all losses" },
        el("span", { "aria-hidden": "true" }, "Equal"),
        ...Object.keys(WAYS).map((way) => pill(way as Way)),
      ),
    );
  }

  // ---- messages from Python
  receive(buffer: ArrayBuffer) {
    const length = new DataView(buffer).getUint32(0, true),
      head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    if (head.error) {
      this.notice.textContent = head.error;
      return;
    }
    // answer for the previous triplet
    if (JSON.stringify(head.of) !== JSON.stringify(this.data.of)) return;
    if (head.failure)
      this.failure = {
        ...head.failure,
        steps: { ...this.failure?.steps, ...head.failure.steps },
        fresh: new Set(Object.keys(head.failure.steps)),
      };
    super.receive(buffer);
  }

  // Streamlit knows only addresses that it wrote or loaded itself, so links written here are sent
  // to Python.
  writeLink(query: Record<string, string>) {
    super.writeLink(query);
    if (this.query === this.known) return;
    this.known = this.query;
    this.pending.push(this.query);
    this.setState("link", { query: location.search.slice(1), id: this.answered });
  }

  async update(data: FailureData) {
    await this.ready;
    // Ignore echoes of sent links; the display is newer.
    const echo = this.pending.indexOf(data.query);
    if (echo >= 0) {
      this.pending.splice(0, echo + 1);
      data = { ...data, query: this.query };
    } else this.known = data.query;
    if (JSON.stringify(data.of) !== JSON.stringify(this.data.of)) {
      Object.assign(this, {
        data: {
          ...this.data,
          of: data.of,
          home: data.home,
          circle: data.circle,
          images: data.images,
        },
      });
      this.failure = undefined;
      [this.done, this.undone] = [[JSON.stringify(data.scene)], []];
      [this.rate, this.by] = [data.rate, data.by];
      this.stepSlider();
      this.loadStyles();
    }
    await super.update(data);
    this.tellLastWord();
  }

  // Show the verdict of the true step, once it was taken.
  tellLastWord() {
    const { last_word, trained } = this.data;
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

  loadStyles() {
    POINTS.forEach((name, i) => {
      if (this.thumbs[name].getAttribute("src") !== this.data.images[i])
        this.thumbs[name].src = this.data.images[i];
    });
    this.circleKey.hidden = !this.data.circle;
    this.tellLastWord();
  }

  updateNumbers(now: boolean) {
    super.updateNumbers(now);
    if (this.failure) this.tell(this.failure);
  }

  tell(f: Shown) {
    const { now, data } = f,
      also = (key: "right" | "wrong" | "ap", text = count) =>
        f.moved ? ` (was ${text(data[key])})` : "";
    setText(
      this.now,
      `Now: P at rank ${count(now.right)}${also("right")}, N at rank ${count(now.wrong)}${also("wrong")}, AP@R ${percent(now.ap)} %${also("ap", (x) => `${percent(x)} %`)}.`,
    );
    setText(this.searched, count(f.searched));
    this.steps.tell(f, this.scene.loss, Boolean(this.hand.busy));
    const number = (x: number | null) =>
      x === null ? "∞" : Math.abs(x) < 5e-5 ? "0" : x.toFixed(3);
    this.parts.replaceChildren(
      el(
        "tr",
        {},
        ...[
          ["", ""],
          ["length", "length of the force"],
          ["in plane", "length of the component in the plane, which is drawn"],
          ["off plane", "component normal to the plane; only for losses that depend on norms"],
          [
            "radial",
            "component along the embedding of the point (outward positive), which normalisation removes",
          ],
          ["tangential", "length of the component that moves the point along the sphere"],
        ].map(([t, title]) => el("th", { scope: "col", title }, t)),
      ),
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
    this.exact.replaceChildren(...f.words.map((text: string) => el("li", {}, text)));
    const away = !this.isHome();
    this.whatIf.classList.toggle("away", away);
    setText(
      this.whatIf.firstChild,
      away
        ? "Points differ from the embeddings."
        : "The three embeddings. Drag a point to see what changes.",
    );
    this.back.hidden = !away;
  }

  numbers() {
    super.numbers();
    this.updateOverlay();
  }

  // ---- layers over the plane
  sync() {
    super.sync();
    this.updateOverlay();
  }

  updateOverlay() {
    if (!this.size || !this.overlay) return;
    const ink = INK[this.theme],
      place = POINTS.map((name) => this.toPixels(this.scene[name])),
      [ox, oy] = this.toPixels([0, 0]),
      { circle } = this.data;
    this.circle.style.display = circle ? "" : "none";
    if (circle)
      put(this.circle, {
        cx: ox,
        cy: oy,
        r: (circle * this.size) / (2 * this.scene.view[2]),
        stroke: ink.text,
      });
    // Images keep their places during a gesture.
    const thumbs = placeThumbnails(
      place,
      this.size,
      this.hand.busy ? [] : this.markedPlaces(place),
    );
    POINTS.forEach((name, i) => {
      const [x, y] = place[i];
      this.thumbs[name].style.transform = `translate(${thumbs[i][0]}px, ${thumbs[i][1]}px)`;
      const end = this.failure?.ends?.[i],
        [line, mark] = this.ghosts[i],
        moves = end && !this.hand.busy?.classList?.contains("handle");
      for (const node of [line, mark]) node.style.display = moves ? "" : "none";
      if (!moves) return;
      const [ex, ey] = this.toPixels(end);
      put(line, { x1: x, y1: y, x2: ex, y2: ey, stroke: ink[name] });
      put(
        mark,
        name === "negative"
          ? { x: ex - 6, y: ey - 6, stroke: ink[name] }
          : { cx: ex, cy: ey, stroke: ink[name] },
      );
    });
  }

  // Return points on force arrows and at the ends of the step.
  // place: of each point
  markedPlaces(place: number[][]) {
    const { field, scene, failure } = this;
    if (!field) return [];
    const tips = field.forces.map(([fx, fy], i) => {
      const size = Math.hypot(fx, fy);
      if (scene.forces === false || !(size > 1e-9)) return null;
      const far = reach(size, this.size, scene.edges ? this.forceScale : null) / size;
      return [place[i][0] + far * fx, place[i][1] - far * fy];
    });
    return [...along(place, tips), ...(failure?.ends ?? []).map((end) => this.toPixels(end))];
  }

  png() {
    this.canvas.toBlob((blob) => save("failure.png", blob));
  }
}

export const { render, unmount } = defineComponent(Failure);
