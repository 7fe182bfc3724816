// Transport page: a feature map to paint, prototypes to drag, and the results of three poolings.
// Python computes everything.
import type { TransportAnswer, TransportData, TransportRequest, State, Options } from "./types.ts";
import { Asking } from "../../kit/asking.ts";
import { defineComponent, paintScale } from "../../kit/component.ts";
import { drawing, el, setText, tidy } from "../../kit/dom.ts";
import { INK, rampColour } from "../../kit/colours.ts";
import { Presets, control } from "../../kit/controls.ts";
import { exportLinks } from "../../kit/export.ts";
import { fit } from "../../kit/screen.ts";
import { Story } from "../story/story.ts";
import { Charts } from "./charts.tsx";
import {
  SIDE,
  STEPS,
  cells,
  colourOf,
  codeAt,
  frameOf,
  join,
  shade,
  split,
  triangle,
} from "./draw.ts";
import { handle, lookable, paintable } from "./pointer.ts";

const POOLINGS = ["linear programme", "smoothed", "average"];
const MARKS = ["◇", "○", "□"];
const MOST_UNDO = 200;
const plain = (v: number) =>
  v === null
    ? "–"
    : v === 0
      ? "0"
      : Math.abs(v) < 1e-3 || Math.abs(v) >= 1e4
        ? v.toExponential(2)
        : String(Number(v.toPrecision(4)));

export class Transport extends Asking<TransportData, TransportRequest, TransportAnswer> {
  state: State;
  options: Options;
  map = el("canvas", { class: "map", tabindex: 0, role: "application" });
  brushes: HTMLButtonElement[];
  purityBar = el("input", {
    type: "range",
    min: 0.4,
    max: 1,
    step: 0.0125,
    value: 1,
    "aria-label": "purity of the brush",
    title: "Share of the colour; the two other colours share the rest",
  });
  purityText = el("output");
  sizes: HTMLButtonElement[];
  undoButton: HTMLButtonElement;
  redoButton: HTMLButtonElement;
  cellText = el("p", { class: "caption cell" });
  origin = el("p", { class: "caption origin" });
  cards: { canvas: HTMLCanvasElement; share: HTMLElement; box: HTMLElement }[];
  bar = el("canvas", { width: 120, height: 1 });
  most = el("span");
  plane = el("canvas", { role: "img" });
  planeBox: HTMLDivElement;
  plans = el("div", { class: "plans" });
  addButton: HTMLButtonElement;
  removeButton: HTMLButtonElement;
  charts = new Charts(
    (epsilon) => this.setEpsilon(epsilon),
    () => this.rest(),
  );
  side = el("div", { class: "panel" });
  presets: Presets<TransportData["options"]["presets"][number]>;
  live = el("div", { class: "hidden", "aria-live": "polite" });
  notice = el("p", { class: "caption notice" });
  tableButtons: HTMLButtonElement[];
  numbers: HTMLDivElement;
  notes: HTMLDivElement;
  panelling: number;

  past: string[] = [];
  future: string[] = [];
  cursor = 0; // cell of the keyboard cursor
  mark: number | null = null; // cell under the pointer
  wide = 1;
  purity = 1;
  hue = "red";
  brush = join(STEPS, 0);
  brushText = "";
  answer: TransportAnswer | undefined;
  chosen: number | undefined; // preset
  touched: number | undefined; // prototype
  holding = false;
  story = new Story(this, "transport", {
    back: ["prototypes", "an average"],
    next: ["gap_vs_gsp", "can it be learned?"],
  });
  before = "";
  pins: ReturnType<typeof handle>[] = [];
  shares: { canvas: HTMLCanvasElement; text: HTMLElement; bar: HTMLElement; box: HTMLElement }[] =
    [];

  constructor(root: ParentNode, data: TransportData) {
    super(root, data, { api: "api/transport", styles: "pooling/transport/transport.css" });
    this.state = structuredClone(data.state);
    this.options = data.options;
  }

  onReady() {
    this.observer.observe(this.whole);
    this.controls();
    this.handles();
    this.resize();
    this.rest();
  }

  // ---- elements
  dom() {
    const small = (text: string, title: string, act: () => void, extra = {}) =>
      el("button", { title, onclick: act, ...extra }, text);
    paintable(this.map, this);
    this.brushes = [
      ["red", "1"],
      ["blue", "2"],
      ["background", "3"],
    ].map(([hue, key]) =>
      el(
        "button",
        { "data-brush": hue, title: `key ${key}`, onclick: () => this.setBrushHue(hue) },
        el("i"),
        hue,
      ),
    );
    this.purityBar.addEventListener("input", () => {
      this.purity = Number(this.purityBar.value);
      this.setBrushHue(this.hue === "free" ? "red" : this.hue);
    });
    this.sizes = [1, 2, 3].map((n) =>
      small(`${n}×${n}`, `brush of ${n} by ${n} pixels`, () => {
        this.wide = n;
        this.tellBrush();
      }),
    );
    this.undoButton = small("Undo", "Undo (Ctrl+Z)", () => this.undo());
    this.redoButton = small("Redo", "Redo (Ctrl+Y)", () => this.redo());
    const maps = el(
      "select",
      { "aria-label": "map" },
      el("option", { value: "" }, "Choose a map …"),
      ...Object.entries(this.options.maps).map(([name, m]) =>
        el("option", { value: name }, m.title),
      ),
    );
    maps.addEventListener("change", () => {
      if (maps.value)
        this.change(() => {
          this.state.pixels = [...this.options.maps[maps.value].pixels];
        });
      maps.value = "";
    });
    this.cards = POOLINGS.map((name, i) => {
      const canvas = el("canvas", { role: "img", "data-pooling": name }),
        share = el("b", { "data-readout": `share_${["lp", "smoothed", "average"][i]}` });
      lookable(canvas, this);
      return {
        canvas,
        share,
        box: el(
          "figure",
          {},
          el("h4", {}, MARKS[i], " ", ["Linear programme", "Smoothed (exact)", "Average"][i]),
          canvas,
          el(
            "p",
            { class: "share" },
            share,
            el("span", {}, " of the weight on informative pixels"),
          ),
        ),
      };
    });
    this.planeBox = el("div", { class: "plane" }, this.plane);
    this.plane.addEventListener("pointerdown", (e) => this.pick(e));
    this.addButton = small("Add prototype", "Add a prototype at the colour of the brush", () =>
      this.add(),
    );
    this.removeButton = small("Remove", "Remove the last touched prototype (Delete)", () =>
      this.remove(),
    );
    this.presets = new Presets(this.options.presets, (i) => this.preset(i));
    const whole = el(
      "div",
      { class: "lab" },
      ...(this.hidden.has("presets") ? [] : [this.presets.row, this.presets.text]),
      el(
        "div",
        { class: "stage" },
        el(
          "section",
          { class: "left" },
          el("h4", {}, "Paint the map"),
          this.map,
          this.origin,
          ...(this.hidden.has("brush")
            ? []
            : [
                el(
                  "div",
                  { class: "pills brushes", role: "group", "aria-label": "brush" },
                  ...this.brushes,
                ),
                el("label", { class: "purity" }, "purity", this.purityBar, this.purityText),
                el(
                  "div",
                  { class: "pills" },
                  ...this.sizes,
                  this.undoButton,
                  this.redoButton,
                  small("Fill", "Paint all pixels with the brush", () =>
                    this.change(() => this.state.pixels.fill(this.brush)),
                  ),
                  small("Clear", "Set all pixels to background", () =>
                    this.change(() => this.state.pixels.fill(0)),
                  ),
                ),
                maps,
              ]),
          this.cellText,
        ),
        el(
          "section",
          { class: "middle" },
          el("div", { class: "cards" }, ...this.cards.map((c) => c.box)),
          el(
            "div",
            { class: "scale" },
            el("span", {}, "weight of a pixel: 0"),
            this.bar,
            this.most,
          ),
          this.story.whole,
          el(
            "div",
            { class: "lower" },
            el(
              "figure",
              {},
              el("h4", {}, "Features and prototypes"),
              this.planeBox,
              el("div", { class: "pills" }, this.addButton, this.removeButton),
              el(
                "p",
                { class: "caption" },
                "Violet: open gate. Dashed rings: distance within which the linear programme opens the gate. Lines: nearest prototype. ◇ ○ □: pooled vectors. Click to place the brush.",
              ),
            ),
            el(
              "figure",
              {},
              el("h4", {}, "Plan: mass from each pixel to each prototype"),
              this.plans,
              el(
                "p",
                { class: "caption" },
                "Each map shows which share of a pixel's mass 1/n moves to the prototype, from 0 to 1. The maps sum to 1. z is the prototype's share of the transported mass.",
              ),
            ),
          ),
        ),
        this.side,
      ),
      ...(this.hidden.has("charts") ? [] : [this.charts.whole]),
      this.notice,
      this.live,
    );
    whole.addEventListener("keydown", (e) => {
      if (!(e.ctrlKey || e.metaKey) || (e.target as Element).matches("input")) return;
      const key = e.key.toLowerCase();
      if (key === "z" && !e.shiftKey) this.undo();
      else if (key === "y" || key === "z") this.redo();
      else return;
      e.preventDefault();
    });
    return whole;
  }

  controls() {
    const { limits } = this.options,
      { state, hidden } = this;
    const slider = (
      name: "mu" | "epsilon" | "sweeps",
      symbol: string,
      help: string,
      range: [number, number],
      extra: { title: string; whole?: boolean; log?: boolean; step?: number },
    ) => {
      if (hidden.has(name)) return [];
      const made = control(
        { name, symbol, help, low: range[0], high: range[1], ...extra },
        state[name],
        {
          onInput: (x: number) => {
            const v = Math.min(Math.max(x, range[0]), range[1]);
            state[name] = extra.whole ? Math.round(v) : v;
            this.leavePreset();
            this.ask();
          },
          onRest: () => {
            this.controls();
            this.rest();
          },
        },
      );
      setText(made.querySelector(".symbol"), symbol);
      return [el("div", { class: "named" }, el("span", { title: help }, extra.title), made)];
    };
    const table = this.options.table.map((e) =>
      el(
        "button",
        {
          "data-epsilon": e,
          title: `epsilon = ${e}`,
          onclick: () => {
            this.setEpsilon(e);
            this.rest();
            this.controls();
          },
        },
        `ε ${e}`,
        el("b", {}, ""),
      ),
    );
    this.tableButtons = table;
    const row = (name: string, label: string, title: string) =>
      el("div", { title }, el("span", {}, label), el("b", { "data-readout": name }, ""));
    this.numbers = el(
      "div",
      { class: "numbers" },
      row("bias", "bias a*", "The bias at which the mean gate equals μ"),
      row("r", "rate r", "Factor by which a sweep reduces a small error: r = 1 − k/μ"),
      row("k", "k", "Mean of s (1 − s)"),
      row(
        "needed",
        "sweeps to 1e-6",
        "Published sweeps until the relative error of every pixel's mass is at most 1e-6",
      ),
      row("newton_steps", "Newton steps", "Newton steps to machine precision"),
      row("error", "error after K", "Largest relative deviation of a pixel's mass after K sweeps"),
      row(
        "swept_sum",
        "sum of the weights after K sweeps",
        "Sum of the weights from ρ after K sweeps; 1 once converged",
      ),
    );
    this.notes = el("div", { class: "notes" });
    const before = (this.root as ParentNode & Partial<ShadowRoot>).activeElement as
        HTMLInputElement | null | undefined,
      kind = before?.type,
      name = before?.getAttribute("aria-label");
    this.side.replaceChildren(
      el(
        "section",
        {},
        el("h4", {}, "Problem"),
        ...slider("mu", "μ", "Transported mass: share of the map to pool", limits.mu, {
          title: "share pooled",
          step: 0.01,
        }),
        ...slider("epsilon", "ε", "Inverse temperature; large values select hard", limits.epsilon, {
          title: "hardness of the gate",
          log: true,
        }),
        ...slider(
          "sweeps",
          "K",
          "Sweeps of the published iteration; they affect only the convergence chart",
          limits.sweeps,
          { title: "published sweeps", log: true, whole: true },
        ),
      ),
      el(
        "section",
        {},
        el("h4", {}, "Share of the weight on the informative pixels, by ε"),
        el("div", { class: "table" }, ...table),
      ),
      el("section", {}, el("h4", {}, "Solution"), this.numbers),
      this.notes,
      ...(hidden.has("take") || hidden.has("export")
        ? []
        : [
            el(
              "section",
              {},
              el("h4", {}, "Export"),
              el(
                "div",
                { class: "pills" },
                ...exportLinks(
                  this.data.base,
                  "transport",
                  () => `${this.query}${this.theme === "dark" ? "&dark=1" : ""}`,
                  {
                    svg: "SVG",
                    pdf: "PDF",
                    png: "PNG",
                    npz: "arrays (npz)",
                    json: "arrays (JSON)",
                    py: "Python",
                  },
                ),
              ),
            ),
          ]),
    );
    if (name)
      ([...this.side.querySelectorAll("[aria-label]")] as HTMLInputElement[])
        .find((e) => e.getAttribute("aria-label") === name && e.type === kind)
        ?.focus();
    this.tell();
  }

  handles() {
    for (const h of this.pins) h.node.remove();
    this.pins = this.state.prototypes.map((_, i) => {
      const pin = handle(`prototype`, () => `prototype ${i + 1}`, this, {
        get: () => this.state.prototypes[i],
        set: (code: number) => {
          this.hold();
          this.state.prototypes[i] = code;
          this.leavePreset();
          this.placePins();
          this.ask();
        },
        rest: () => {
          this.holding = false;
          this.rest();
        },
        remove: () => this.remove(i),
      });
      pin.node.textContent = String(i + 1);
      pin.node.dataset.handle = `prototype-${i + 1}`;
      pin.node.addEventListener("focus", () => {
        this.touched = i;
      });
      return pin;
    });
    this.pins.push(
      handle("brush", () => "brush", this, {
        get: () => this.brush,
        set: (code: number) => this.setFreeBrush(code),
        rest: () => {},
      }),
    );
    this.planeBox.append(...this.pins.map((p) => p.node));
    this.addButton.disabled = this.state.prototypes.length >= this.options.limits.prototypes;
    this.removeButton.disabled = this.state.prototypes.length < 2;
    this.placePins();
    this.tellBrush();
  }

  placePins() {
    for (const p of this.pins) p.place(this.plane.clientWidth, this.plane.clientHeight);
  }

  // ---- the brush
  setBrushHue(hue: string) {
    this.hue = hue;
    const s = Math.round(((1 - this.purity) * STEPS) / 2),
      pure = STEPS - 2 * s;
    this.brush = hue === "red" ? join(pure, s) : hue === "blue" ? join(s, pure) : join(s, s);
    this.placePins();
    this.tellBrush();
  }

  setFreeBrush(code: number) {
    this.hue = "free";
    this.brush = code;
    this.placePins();
    this.tellBrush();
  }

  tellBrush() {
    for (const b of this.brushes) {
      b.setAttribute("aria-pressed", String(b.dataset.brush === this.hue));
      const code =
        b.dataset.brush === "red"
          ? join(STEPS, 0)
          : b.dataset.brush === "blue"
            ? join(0, STEPS)
            : 0;
      (b.firstChild as HTMLElement).style.background = colourOf(code, this.theme);
    }
    this.sizes.forEach((b, i) => b.setAttribute("aria-pressed", String(this.wide === i + 1)));
    const [red, blue] = split(this.brush);
    this.purityText.textContent = this.hue === "free" ? "free" : tidy(this.purity);
    this.pins[this.pins.length - 1].node.style.background = colourOf(this.brush, this.theme);
    this.brushText = `red ${tidy(red / STEPS)}, blue ${tidy(blue / STEPS)}, background ${tidy((STEPS - red - blue) / STEPS)}`;
    this.undoButton.disabled = !this.past.length;
    this.redoButton.disabled = !this.future.length;
  }

  pick(e: PointerEvent) {
    const box = this.plane.getBoundingClientRect();
    this.setFreeBrush(
      codeAt(frameOf(box.width, box.height).from([e.clientX - box.left, e.clientY - box.top])),
    );
  }

  // ---- changes of the state
  scene() {
    return JSON.stringify([this.state.pixels, this.state.prototypes]);
  }
  leavePreset() {
    if (this.chosen !== undefined) {
      this.chosen = undefined;
      this.presets.press();
    }
  }
  remember(scene: string) {
    this.past.push(scene);
    if (this.past.length > MOST_UNDO) this.past.shift();
    this.future = [];
  }

  // Start one entry of the undo list for a whole drag.
  hold() {
    if (!this.holding) {
      this.holding = true;
      this.remember(this.scene());
    }
  }

  change(act: () => unknown) {
    this.remember(this.scene());
    act();
    this.leavePreset();
    this.handles();
    this.rest();
  }

  strokeBegins() {
    this.before = this.scene();
  }

  paintCell(x: number, y: number) {
    const from = -Math.floor((this.wide - 1) / 2);
    for (let dy = from; dy < from + this.wide; dy++)
      for (let dx = from; dx < from + this.wide; dx++) {
        if (x + dx >= 0 && x + dx < SIDE && y + dy >= 0 && y + dy < SIDE)
          this.state.pixels[x + dx + SIDE * (y + dy)] = this.brush;
      }
    this.leavePreset();
    this.draw();
    this.ask();
  }

  strokeEnds() {
    if (this.before !== this.scene()) this.remember(this.before);
    this.tellBrush();
    this.rest();
  }

  undo() {
    this.restoreScene(this.past, this.future);
  }
  redo() {
    this.restoreScene(this.future, this.past);
  }
  restoreScene(from: string[], to: string[]) {
    if (!from.length) return;
    to.push(this.scene());
    [this.state.pixels, this.state.prototypes] = JSON.parse(from.pop() as string);
    this.leavePreset();
    this.handles();
    this.rest();
  }

  add() {
    if (this.state.prototypes.length >= this.options.limits.prototypes) return;
    this.change(() => this.state.prototypes.push(this.brush));
    this.touched = this.state.prototypes.length - 1;
    this.pins[this.touched].node.focus({ preventScroll: true });
  }

  remove(i = this.touched ?? this.state.prototypes.length - 1) {
    if (this.state.prototypes.length < 2) return;
    this.change(() =>
      this.state.prototypes.splice(Math.min(i, this.state.prototypes.length - 1), 1),
    );
    this.touched = undefined;
  }

  setEpsilon(epsilon: number) {
    const [low, high] = this.options.limits.epsilon;
    this.state.epsilon = Number(Math.min(Math.max(epsilon, low), high).toPrecision(3));
    this.leavePreset();
    clearTimeout(this.panelling);
    this.panelling = setTimeout(() => this.controls(), 120);
    this.ask();
  }

  preset(i: number) {
    this.remember(this.scene());
    this.state = structuredClone(this.options.presets[i].state);
    this.chosen = i;
    this.load();
  }

  load() {
    this.controls();
    this.handles();
    this.rest();
    this.presets.press(this.chosen);
  }

  // ---- messages from Streamlit
  onTheme() {
    this.tellBrush();
    this.tell();
    this.draw();
  }

  onLinkFollowed(data: TransportData) {
    this.state = structuredClone(data.state);
    this.load();
  }

  ask(rest = false) {
    this.link.send({ id: ++this.seq, state: this.state, ...(rest ? { rest } : {}) });
    this.draw();
  }

  rest() {
    this.ask(true);
  }

  onAnswer(answer: TransportAnswer) {
    this.answer = answer;
    this.plan(answer);
    this.tell();
    if (answer.query !== undefined) this.onRestAnswer(answer);
    this.draw();
  }

  onRestAnswer({ query = "", id, shares }: TransportAnswer) {
    if (id !== this.seq) return;
    this.setLink(query, this.options.kept);
    setText(this.origin, this.story.origin(query, "paint"));
    const [lp, smoothed, average] = shares.map((s) => s.toFixed(3));
    this.live.textContent = `Share of the weight on the informative pixels: linear programme ${lp}, smoothed ${smoothed}, average ${average}.`;
  }

  plan(answer: TransportAnswer) {
    const m = answer.state.prototypes.length;
    if (this.plans.children.length === m + 1) return;
    this.shares = Array.from({ length: m + 1 }, (_, i) => {
      const canvas = el("canvas", { role: "img" }),
        text = el("span"),
        bar = el("i");
      lookable(canvas, this);
      return {
        canvas,
        text,
        bar,
        box: el(
          "div",
          { class: "plan" },
          el("small", {}, i < m ? `prototype ${i + 1}` : "left out, ρ"),
          canvas,
          el("div", { class: "z" }, el("span", { class: "track" }, bar), text),
        ),
      };
    });
    this.plans.replaceChildren(...this.shares.map((s) => s.box));
    this.resize();
  }

  // ---- texts and numbers
  tell() {
    const a = this.answer;
    if (!a) return;
    const values = {
      bias: a.bias === null ? "∞" : plain(a.bias),
      r: plain(a.r),
      k: plain(a.k),
      needed:
        a.needed !== null ? String(a.needed) : a.query === undefined ? "…" : `> ${a.most_sweeps}`,
      newton_steps: String(a.newton_steps),
      error: plain(a.error),
      swept_sum: a.swept_sum.toFixed(4),
    };
    for (const [name, text] of Object.entries(values)) {
      const node = this.numbers.querySelector(`[data-readout=${name}]`);
      if (node) node.textContent = text;
    }
    a.shares.forEach((s, i) => {
      this.cards[i].share.textContent = s.toFixed(3);
    });
    a.table.forEach(([e, share], i) => {
      setText(this.tableButtons[i].lastChild, share.toFixed(3));
      this.tableButtons[i].setAttribute("aria-pressed", String(a.state.epsilon === e));
    });
    this.story.tell(a.verdict, a.next);
    this.notes.replaceChildren(...a.notes.map((text) => el("p", { class: "caption" }, text)));
    this.notes.hidden = !a.notes.length;
    const paint = (t: number) => rampColour(t, this.theme);
    paintScale(this.bar, paint);
    this.most.textContent = `The maximum weight is 1/(nμ) = ${plain(a.most)}. ${a.informative} pixels are informative.`;
    this.notice.textContent = this.slower;
    this.tellCell();
  }

  tellCell() {
    const a = this.answer,
      j = this.mark,
      n = SIDE * SIDE;
    if (j === null || !a) {
      this.cellText.textContent = `Brush: ${this.brushText}. Point at a pixel for its numbers; arrow keys and space paint.`;
      return;
    }
    const [red, blue] = split(this.state.pixels[j]),
      w = (k: number) => a.weights[k * n + j].toFixed(4);
    const taken = a.state.prototypes
      .map((_, i) => `π${i + 1} ${a.plan[i * n + j].toFixed(3)}`)
      .join(", ");
    this.cellText.textContent = `Row ${Math.floor(j / SIDE) + 1}, column ${(j % SIDE) + 1}: red ${tidy(red / STEPS)}, blue ${tidy(blue / STEPS)}, background ${tidy((STEPS - red - blue) / STEPS)}. Weights ◇ ${w(0)} ○ ${w(1)} □ ${w(2)}. Gate ${a.gates[j].toFixed(3)}, nearest prototype ${a.distance[j].toFixed(3)} away; ${taken}, left out ${a.left[j].toFixed(3)}.`;
  }

  look(j: number | null, spoken = false) {
    if (j === this.mark) return;
    this.mark = j;
    this.tellCell();
    if (spoken && j !== null) this.live.textContent = this.cellText.textContent;
    this.draw();
  }

  // ---- drawing
  resize() {
    fit([
      this.map,
      this.plane,
      ...this.cards.map((c) => c.canvas),
      ...this.shares.map((s) => s.canvas),
      ...this.charts.canvases,
    ]);
    this.placePins();
    this.draw();
  }

  paint() {
    if (!this.plane.clientWidth) return; // the visitor is leaving the page
    const { answer: a, theme, mark } = this,
      ink = INK[theme],
      n = SIDE * SIDE,
      root = this.root as ParentNode & Partial<ShadowRoot>,
      focus = root.activeElement === this.map && this.map.matches(":focus-visible");
    cells(
      drawing(this.map),
      this.map.clientWidth,
      (j) => colourOf(this.state.pixels[j], theme),
      ink,
      { mark, cursor: focus },
    );
    const still = a?.query !== undefined; // update texts for screen readers after a gesture
    if (still)
      this.map.setAttribute(
        "aria-label",
        `map of 10 by 10 pixels, ${a?.informative ?? "?"} informative; arrow keys move the cursor, space paints, shift and arrows paint along, 1 2 3 choose red, blue, background`,
      );
    if (!a) return;
    this.cards.forEach(({ canvas }, i) => {
      const values = a.weights.subarray(i * n, (i + 1) * n);
      cells(drawing(canvas), canvas.clientWidth, shade(values, a.most, theme), ink, {
        mark,
      });
      if (still)
        canvas.setAttribute(
          "aria-label",
          `weights of the ${POOLINGS[i]}: from ${plain(Math.min(...values))} to ${plain(Math.max(...values))}, ${(100 * a.shares[i]).toFixed(1)} per cent on the informative pixels; pooled vector red ${a.mixtures[i][0].toFixed(3)}, background ${a.mixtures[i][1].toFixed(3)}, blue ${a.mixtures[i][2].toFixed(3)}`,
        );
    });
    this.shares.forEach(({ canvas, text, bar }, i) => {
      const last = i === a.state.prototypes.length,
        values = last ? a.left : a.plan.subarray(i * n, (i + 1) * n),
        z = last ? 1 - a.state.mu : a.marginals[i];
      if (i > a.state.prototypes.length) return;
      cells(drawing(canvas), canvas.clientWidth, shade(values, 1, theme), ink, { mark });
      text.textContent = last ? `1 − μ = ${z.toFixed(2)}` : `z = ${z.toFixed(3)}`;
      bar.style.width = `${100 * Math.max(z, 0)}%`;
      if (still)
        canvas.setAttribute(
          "aria-label",
          last
            ? `mass left out, ${(100 * z).toFixed(0)} per cent of all`
            : `plan of prototype ${i + 1}: it takes ${(100 * z).toFixed(1)} per cent of the transported mass`,
        );
    });
    triangle(
      drawing(this.plane),
      this.plane.clientWidth,
      this.plane.clientHeight,
      { answer: a, pixels: this.state.pixels, mark },
      theme,
    );
    if (still)
      this.plane.setAttribute(
        "aria-label",
        `feature triangle with corners red, blue and background, ${new Set(this.state.pixels).size} different features, ${a.state.prototypes.length} prototypes; pooled vectors ${a.mixtures.map((v, i) => `${POOLINGS[i]} (${v.map((x) => x.toFixed(3)).join(", ")})`).join(", ")}`,
      );
    this.charts.paint(a, theme, mark);
    this.whole.dataset.seq = String(a.id);
    if (a.query !== undefined && a.id === this.seq) this.whole.dataset.rest = String(a.id);
  }
}

export const { render, unmount } = defineComponent(Transport);
