// GAP vs GSP page: two training runs on the same tokens, computed by Python step by step and shown
// side by side on one clock.
import type {
  Frame,
  GapAnswer,
  GapData,
  Limit,
  Measure,
  Setting,
  Settings,
  Shown,
  Side,
  Study,
} from "./types.ts";
import type { Context, Ink, Theme } from "../../kit/types.ts";
import { StepCharts } from "../../kit/chart/steps.tsx";
import { defineComponent } from "../../kit/component.ts";
import { control } from "../../kit/controls.ts";
import { drawing, el, save, setText } from "../../kit/dom.ts";
import { INK } from "../../kit/colours.ts";
import { brief } from "../../kit/plot.ts";
import {
  liveOf,
  noticeOf,
  numberBox,
  presetsOf,
  section,
  seedField,
  tick,
  transport,
} from "../../kit/timeline/parts.ts";
import { Player, clone } from "../../kit/timeline/player.ts";
import { fit } from "../../kit/screen.ts";
import { Story } from "../story/story.ts";
import { CURVES, MEASURES } from "./curves.ts";
import { OWN, classAt, colourOf, paintPlane } from "./draw.ts";
import { History, SIDES } from "./history.ts";
import { verdict } from "./verdict.ts";

const TITLES = { gap: "GAP: the plain average", gsp: "GSP: a learned gate, then the average" };
const percent = (x: number) => (Number.isFinite(x) ? `${(100 * x).toFixed(1)} %` : "–");

export type Sign = (ctx: CanvasRenderingContext2D, ink: Ink, theme: Theme) => void;

class GapOrGsp extends Player<Study, GapData, GapAnswer, History, Settings> {
  chosen: number | null;
  planes: {
    side: Side;
    canvas: HTMLCanvasElement;
    frame: HTMLDivElement;
    score: HTMLElement;
    whole: HTMLElement;
  }[];
  chips: HTMLButtonElement[];
  words = el("p", { class: "caption about" });
  curves = new StepCharts(
    CURVES,
    (step) => this.scrubTo(step),
    () => this.rest(),
  );
  cells = Object.fromEntries(
    SIDES.map((side) => [
      side,
      Object.fromEntries(
        MEASURES.map(([name]) => [name, el("td", { "data-readout": `${side} ${name}` })]),
      ),
    ]),
  ) as unknown as Record<Side, Record<Measure, HTMLElement>>;
  numbers: HTMLAnchorElement;
  size: number;
  signsFor: string;
  unasked = false; // true until the visitor touches the page
  over: number | null = null; // class under the pointer
  paintedAt = 0;
  panels = 0;
  story = new Story(this, "gap_vs_gsp", {
    back: ["transport", "a gate"],
    next: ["collage", "on images"],
  });
  shown = { hulls: true, samples: true, prototypes: true };
  labels: Uint8Array;
  runs: (readonly [HTMLAnchorElement, HTMLPreElement])[] = [];
  tomls: Record<Side, string> | undefined;
  signed: [canvas: HTMLCanvasElement, draw: Sign][] = [];

  constructor(root: ParentNode, data: GapData) {
    super(root, data, {
      api: "api/gap_or_gsp",
      styles: "pooling/gap_vs_gsp/gap_vs_gsp.css",
      ahead: 3,
    });
    this.chosen = data.chosen;
    Object.assign(this.keys, {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      ",": () => this.turn(-1),
      ".": () => this.turn(1),
      Escape: () => this.choose(null),
    });
  }

  empty() {
    return new History();
  }

  start(data: GapData) {
    super.start(data);
    this.unasked = this.playing;
    const touched = () => {
      this.unasked = false;
    };
    for (const gesture of ["pointerdown", "keydown"])
      this.whole.addEventListener(gesture, touched, { capture: true });
  }

  // ---- elements
  dom() {
    this.planes = SIDES.map((side) => {
      const canvas = el("canvas", { role: "img", "aria-label": TITLES[side], "data-side": side }),
        frame = el("div", { class: "frame" }, canvas),
        score = el("b");
      canvas.addEventListener("pointermove", (e) => this.hover(e, canvas, side));
      canvas.addEventListener("pointerleave", () => {
        this.over = null;
        this.invalidate();
      });
      canvas.addEventListener("click", (e) => {
        const found = this.classUnder(e, canvas, side);
        this.choose(found === this.chosen ? null : found);
      });
      return {
        side,
        canvas,
        frame,
        score,
        whole: el(
          "figure",
          {},
          el("figcaption", {}, el("span", {}, TITLES[side]), el("span", {}, "MAP@R ", score)),
          frame,
        ),
      };
    });
    const pair = el(
      "div",
      {
        class: "pairing",
        tabindex: 0,
        role: "group",
        "aria-label":
          "both training runs: space plays and pauses, left and right arrows step, home goes to the start, end to the last step, comma and full stop choose a class, escape none",
      },
      ...this.planes.map((plane) => plane.whole),
    );
    pair.addEventListener("keydown", (e) => this.key(e));
    this.chips = this.options.classes.map((name, label) =>
      el(
        "button",
        {
          "aria-pressed": "false",
          "aria-label": `class ${label + 1}`,
          title: `class ${label + 1}: ${name}`,
          "data-class": label,
          onclick: () => this.choose(this.chosen === label ? null : label),
        },
        el("i", { class: label < 8 ? "round" : "" }),
        String(label + 1),
      ),
    );
    const table = el(
      "table",
      { class: "numbers" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", {}),
          ...SIDES.map((side) => el("th", { scope: "col" }, side.toUpperCase())),
        ),
      ),
      el(
        "tbody",
        {},
        ...MEASURES.map(([name, title, help]) =>
          el(
            "tr",
            { title: help },
            el("th", { scope: "row" }, title),
            ...SIDES.map((side) => this.cells[side][name]),
          ),
        ),
      ),
    );
    this.curves.whole.append(table);
    const stage = el(
      "div",
      { class: "stage" },
      el(
        "div",
        { class: "main" },
        pair,
        transport(this, "step"),
        this.story.whole,
        noticeOf(this),
        el(
          "div",
          { class: "chips", role: "group", "aria-label": "highlighted class" },
          el("small", {}, "Class"),
          ...this.chips,
        ),
        this.words,
        liveOf(this),
        this.curves.whole,
      ),
      this.side,
    );
    const [row, caption] = presetsOf(this);
    return el("div", { class: "lab" }, this.hidden.has("presets") ? "" : row, caption, stage);
  }

  controls() {
    const { options, state, hidden, now } = this,
      { limits } = options;
    this.panels += 1;
    const slider = (
      name: Setting,
      symbol: string,
      help: string,
      spec: Limit,
      value: number,
      set: (x: number) => void,
    ) => {
      if (hidden.has(name)) return [];
      const made = control({ name: help.split(":")[0], symbol, help, ...spec }, value, {
        onInput: set,
        onRest: () => this.commit(),
      });
      setText(made.querySelector(".symbol"), symbol);
      return [el("div", { class: "named" }, el("span", { title: help }, help.split(":")[0]), made)];
    };
    const bound = (name: Setting, x: number) =>
      Math.min(Math.max(x, limits[name][0]), limits[name][1]);
    const running = (name: Setting, symbol: string, help: string, spec: Limit, unit = 1) =>
      slider(name, symbol, help, spec, now[name] / unit, (x) => {
        now[name] = bound(name, Number((x * unit).toPrecision(6)));
      });
    const number: (
      name: Setting,
      label: string,
      title: string,
      caption: string,
    ) => HTMLElement[] = (name, label, title, caption) =>
      hidden.has(name)
        ? []
        : [
            el(
              "label",
              { class: "field" },
              caption,
              numberBox(this, name, label, limits[name], title),
            ),
          ];
    const show = (key: keyof Shown, text: string, title: string) =>
      tick(this.shown, key, text, title, () => this.invalidate());
    let tau = state.tau;
    const threshold = control(
      {
        name: "active from",
        symbol: "τ",
        help: "Minimum percentage of a class's pooling weight for a token to enter the hull of the class",
        low: 0.1,
        high: 12,
        step: 0.05,
        default: 5,
      },
      100 * state.tau,
      {
        onInput: (x: number) => {
          tau = bound("tau", x / 100);
        },
        onRest: () => this.rehull(tau),
      },
    );
    setText(threshold.querySelector(".symbol"), "τ");
    const figure = el("button", { onclick: () => this.figure() }, "Figure, PNG");
    this.numbers = el("a", { class: "button", download: "" }, "Curves, CSV");
    this.runs = SIDES.map(
      (side) =>
        [
          el("a", { class: "button", download: "" }, `${side.toUpperCase()}, TOML`),
          el(
            "pre",
            { tabindex: 0, "aria-label": `${side.toUpperCase()} as TOML` },
            this.tomls?.[side] ?? "",
          ),
        ] as const,
    );
    this.links();
    return [
      ...section(
        this,
        "pooling",
        "Gate of GSP",
        running(
          "mu",
          "μ",
          "Pooled share: share of each bag's mass that is pooled; at 1, GSP equals GAP",
          {
            low: 0.05,
            high: 1,
            step: 0.01,
          },
        ),
        running("epsilon", "ε", "Gate hardness: large values select only tokens near a prototype", {
          low: 0.5,
          high: 200,
          log: true,
        }),
        ...number(
          "prototypes",
          "prototypes",
          "Learned points to which the gate compares tokens; a new number restarts training",
          "prototypes m",
        ),
        ...number(
          "warmup",
          "warm-up",
          `Steps of plain averaging before the prototypes are chosen from ${options.memory} pooled vectors`,
          "warm-up, steps",
        ),
      ),
      ...section(
        this,
        "training",
        "Training (both sides)",
        running(
          "rate",
          "η",
          "Learning rate: of Adam, in 10⁻⁴",
          { low: 0.1, high: 100, log: true },
          1e-4,
        ),
        running(
          "margin",
          "m⁻",
          "Margin: the contrastive loss pushes bags of different classes apart up to this distance",
          { low: 0.02, high: 0.8, step: 0.005 },
        ),
        ...(hidden.has("seed")
          ? []
          : [seedField(this, "Seed of the initial tokens, the bags and their order")]),
      ),
      ...section(
        this,
        "shown",
        "Shown",
        hidden.has("tau")
          ? []
          : [
              el(
                "div",
                { class: "named" },
                el("span", {}, "minimum weight of a used token, %"),
                threshold,
              ),
            ],
        el(
          "div",
          { class: "switches" },
          show("hulls", "class hulls", "Convex hull of the tokens that count"),
          show("samples", "bags", "Pooled vector of each validation bag shown"),
          show("prototypes", "prototypes", "Prototypes of GSP, once they are placed"),
        ),
      ),
      ...section(this, "legend", "Signs", this.keySymbols()),
      ...section(
        this,
        "take",
        "Export",
        el("div", { class: "pills" }, figure, this.numbers, ...this.runs.map(([a]) => a)),
        el(
          "details",
          {},
          el("summary", {}, "Open as runs"),
          el(
            "p",
            { class: "caption" },
            "Spec files with the current settings, for the command line:",
          ),
          el(
            "pre",
            { tabindex: 0, "aria-label": "command line" },
            SIDES.map((side) => `python -m dmlcore train tokens-${side}.toml`).join("\n"),
          ),
          ...this.runs.map(([, pre]) => pre),
        ),
      ),
    ];
  }

  keySymbols() {
    this.signed = [];
    const sign = (draw: Sign, text: string) => {
      const canvas = el("canvas", { width: 36, height: 36, "aria-hidden": "true" });
      this.signed.push([canvas, draw]);
      return el("span", {}, canvas, text);
    };
    const mark = (ctx: Context, x: number, y: number, r: number, fill: string | null, rim = "") => {
      ctx.beginPath();
      ctx.arc(x, y, r, 0, 7);
      if (fill) {
        ctx.fillStyle = fill;
        ctx.fill();
      }
      if (rim) {
        ctx.strokeStyle = rim;
        ctx.lineWidth = 1.3;
        ctx.stroke();
      }
    };
    const diamond = (ctx: Context, ink: Ink, full: boolean) => {
      ctx.beginPath();
      for (const [x, y] of [
        [9, 2],
        [16, 9],
        [9, 16],
        [2, 9],
      ])
        ctx.lineTo(x, y);
      ctx.closePath();
      ctx.fillStyle = full ? ink.anchor : ink.page;
      ctx.fill();
      ctx.strokeStyle = ink.anchor;
      ctx.lineWidth = 1.4;
      ctx.stroke();
    };
    return el(
      "div",
      { class: "signs" },
      sign(
        (ctx, ink, theme) => mark(ctx, 9, 9, 6, colourOf(0, theme), ink.rim),
        "token of one class, 4 each",
      ),
      sign((ctx, ink) => diamond(ctx, ink, true), "S1–S4: tokens of all classes"),
      sign((ctx, ink) => diamond(ctx, ink, false), "hollow: hardly used by the chosen class"),
      sign((ctx, _ink, theme) => {
        for (const [x, y] of [
          [5, 6],
          [12, 5],
          [9, 13],
        ])
          mark(ctx, x, y, 2.8, colourOf(0, theme));
      }, "bag of 50 tokens, pooled"),
      sign((ctx, ink) => mark(ctx, 9, 9, 5, null, ink.text), "prototype of GSP"),
      sign((ctx, ink) => {
        ctx.setLineDash([3, 3]);
        ctx.strokeStyle = ink.faint;
        ctx.strokeRect(2.5, 2.5, 13, 13);
        ctx.setLineDash([]);
      }, `limit of token coordinates, ±${this.options.bound}`),
    );
  }

  // ---- messages from Python
  onAnswer({ labels }: GapAnswer) {
    this.labels = labels;
  }

  arrive(step: number) {
    super.arrive(step);
    if (!this.unasked || step < this.options.limits.unasked) return;
    this.unasked = false;
    this.pause(`Paused at step ${step}. Press Play to continue.`);
  }

  get full() {
    return "Open it as a run to continue, or go back and change a setting.";
  }

  // ---- changes
  get settings() {
    return this.options.onTheWay;
  }

  // Show hulls for another threshold; the training runs stay the same.
  rehull(tau: number) {
    const { at, playing } = this;
    if (tau === this.state.tau) return;
    this.load({ ...clone(this.state), tau }, at);
    if (playing) this.play();
  }

  onStateReplaced() {
    if ((this.chosen ?? 0) >= this.state.classes) this.chosen = null;
    this.over = null;
  }

  get sentence() {
    return this.options.sentence;
  }

  // ---- link
  describeStep() {
    const frame = this.history.at(this.at);
    return frame
      ? `step ${this.at}, MAP@R of GAP ${brief(frame.gap.held.map_at_r)}, of GSP ${brief(frame.gsp.held.map_at_r)}`
      : "";
  }

  onLink({ runs }: GapAnswer) {
    this.tomls = runs;
    this.runs.forEach(([, pre], i) => setText(pre, runs?.[SIDES[i]] ?? ""));
    this.links();
  }

  marks(): Record<string, string> {
    return this.chosen === null ? {} : { class: String(this.chosen + 1) };
  }

  links() {
    this.numbers.href = this.file("curves.csv");
    this.runs.forEach(([a], i) => {
      a.href = this.file(`tokens-${SIDES[i]}.toml`);
    });
  }

  // ---- highlighted class
  get highlighted() {
    return this.over ?? this.chosen;
  }

  classUnder(event: PointerEvent, canvas: HTMLCanvasElement, side: Side) {
    const box = canvas.getBoundingClientRect(),
      frame = this.history.at(this.at);
    return frame && this.labels
      ? classAt(
          frame[side],
          this.labels,
          this.size,
          event.clientX - box.left,
          event.clientY - box.top,
          event.pointerType === "touch" ? 22 : 12,
        )
      : null;
  }

  hover(event: PointerEvent, canvas: HTMLCanvasElement, side: Side) {
    if (event.pointerType === "touch") return;
    const found = this.classUnder(event, canvas, side);
    canvas.style.cursor = found === null ? "" : "pointer";
    if (found !== this.over) {
      this.over = found;
      this.invalidate();
    }
  }

  choose(label: number | null) {
    this.chosen = label;
    this.over = null;
    this.invalidate();
    this.view.live.value = label === null ? "no class chosen" : this.tellClass(label);
    this.rest();
  }

  tellClass(label: number) {
    const frame = this.history.at(this.at);
    if (!frame) return "";
    const told = SIDES.map((side) => {
      const { onShared, weight, active, classes } = frame[side],
        tokens = [...Array(OWN).keys()].map((s) => classes * OWN + s),
        used = tokens.filter((t) => active(label, t));
      const names = used
        .map((t) => `S${t - classes * OWN + 1} ${percent(weight(label, t))}`)
        .join(", ");
      return `${side.toUpperCase()} puts ${percent(onShared[label])} of its weight on shared tokens (${used.length ? `in the hull: ${names}` : "none in the hull"})`;
    });
    return `Class ${label + 1}: ${told.join("; ")}.`;
  }

  turn(by: number) {
    const n = this.state.classes;
    this.choose(((this.chosen ?? (by > 0 ? -1 : 0)) + by + n) % n);
  }

  // ---- drawing
  resize() {
    this.size = this.planes[0].frame.clientWidth;
    fit([...this.planes.map((p) => p.canvas), ...this.curves.canvases]);
    this.invalidate();
  }

  // Paint the planes in every frame; while playing, curves and numbers only ten times a second.
  paint() {
    const { history, at, theme, highlighted } = this,
      frame = history.at(at),
      now = performance.now();
    if (!frame || !this.size) return;
    for (const { side, canvas } of this.planes) {
      paintPlane(
        drawing(canvas),
        this.size,
        frame[side],
        this.labels,
        { chosen: highlighted, shown: this.shown, bound: this.options.bound },
        theme,
      );
    }
    if (!this.playing || now - this.paintedAt >= 100) {
      this.paintedAt = now;
      this.paintNumbers(frame);
    }
    for (const { canvas } of this.planes) canvas.dataset.step = String(at);
  }

  paintNumbers(frame: Frame) {
    const { history, at, theme, highlighted } = this;
    for (const { side, canvas, score } of this.planes) {
      const { held, prototypes } = frame[side];
      setText(score, Number.isFinite(held.map_at_r) ? held.map_at_r.toFixed(3) : "–");
      canvas.setAttribute(
        "aria-label",
        `${TITLES[side]}, step ${at}: ${this.labels.length} bags of ${frame[side].classes} classes, MAP@R ${brief(held.map_at_r)}, weight on shared tokens ${percent(held.on_shared)}, hull IoU ${brief(held.iou)}, ${prototypes.length / 2} prototypes placed`,
      );
      for (const [name] of MEASURES)
        setText(
          this.cells[side][name],
          Number.isFinite(held[name])
            ? name === "on_shared"
              ? percent(held[name])
              : held[name].toFixed(3)
            : "–",
        );
    }
    // Changes of settings, and the initialisation of the prototypes.
    const marks = [...this.state.changes.map((c) => c.at), ...history.placedAt];
    this.curves.paint({ last: history.last, step: at, marks }, theme, history);
    const { mu, epsilon } = this.settingsAt(at);
    this.story.tell(
      verdict(frame, history.at(0), at, this.playing || at < this.options.limits.unasked),
      new URLSearchParams({ mu: String(mu), epsilon: String(epsilon) }).toString(),
    );
    this.progress();
    setText(this.words, highlighted === null ? this.options.hint : this.tellClass(highlighted));
    const signs = `${theme} ${this.chosen} ${this.panels} ${this.state.classes}`;
    if (this.signsFor === signs) return;
    this.signsFor = signs;
    this.chips.forEach((chip, label) => {
      chip.hidden = label >= this.state.classes;
      chip.setAttribute("aria-pressed", String(this.chosen === label));
      (chip.firstChild as HTMLElement).style.background = colourOf(label, theme);
    });
    for (const [canvas, draw] of this.signed) {
      const ctx = drawing(canvas);
      ctx.setTransform(2, 0, 0, 2, 0, 0);
      ctx.clearRect(0, 0, 18, 18);
      draw(ctx, INK[theme], theme);
    }
  }

  // Return a figure of both planes as shown, with their numbers.
  figure() {
    const [a, b] = this.planes.map((p) => p.canvas),
      gap = 24,
      head = 56,
      whole = el("canvas", { width: a.width + b.width + gap, height: a.height + head }),
      ctx = drawing(whole);
    const ink = INK[this.theme],
      frame = this.history.at(this.at);
    ctx.fillStyle = ink.page;
    ctx.fillRect(0, 0, whole.width, whole.height);
    ctx.fillStyle = ink.text;
    ctx.font = `${Math.round(a.width / 28)}px system-ui, sans-serif`;
    (
      [
        [a, 0],
        [b, a.width + gap],
      ] as const
    ).forEach(([canvas, x], i) => {
      ctx.drawImage(canvas, x, head);
      ctx.fillText(
        `${SIDES[i].toUpperCase()}, step ${this.at}: MAP@R ${brief(frame[SIDES[i]].held.map_at_r)}`,
        x + 8,
        38,
      );
    });
    whole.toBlob((blob) => save(`gap-or-gsp-${this.at}.png`, blob));
  }
}

export const { render, unmount } = defineComponent(GapOrGsp);
