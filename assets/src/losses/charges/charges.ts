// Charges page: points that move under the pulls and pushes of a triplet loss, and that the visitor
// can drag.
import type { ChargesAnswer, ChargesData, Law, Moved, Portrait, Shown, Spec } from "./types.ts";
import type { TimelineRequest } from "../../kit/timeline/types.ts";
import { StepCharts } from "../../kit/chart/steps.tsx";
import { defineComponent } from "../../kit/component.ts";
import { div, drawing, el, readouts, save, setText, show as number } from "../../kit/dom.ts";
import { formula } from "../../kit/formula/formula.ts";
import { control, keyMark, lossPanel } from "../../kit/controls.ts";
import { exportLinks } from "../../kit/export.ts";
import { presentButton } from "../../kit/present/present.ts";
import { follow, within } from "../../kit/hand.ts";
import { choice, numberBox, seedField, tick, transport } from "../../kit/timeline/parts.ts";
import { Player, clone } from "../../kit/timeline/player.ts";
import { fit } from "../../kit/screen.ts";
import { History } from "./history.ts";
import { CLASS, fromPixels, halfWidth, paintCharges, paintPortrait, toPixels } from "./draw.ts";
import { CURVES } from "./curves.ts";

const STILL = 1e-5; // if no point moves farther than this in a step, the simulation is at rest

class Charges extends Player<Spec, ChargesData, ChargesAnswer, History, { law: Law }> {
  canvas = el("canvas", { role: "img", "aria-label": "charges" });
  frame: HTMLDivElement;
  readout = div("readout");
  portrait = el("canvas", {
    class: "portrait",
    role: "img",
    "aria-label": "phase portrait",
  });
  portraitText = el("p", { class: "caption" });
  inner = keyMark("dashed law", "raw = m₂");
  outer = keyMark("law", "raw = 0");
  curves = new StepCharts(
    CURVES,
    (step) => this.scrubTo(step),
    () => this.rest(),
  );
  python: HTMLPreElement;
  files: HTMLAnchorElement[] = [];
  pythonText: string | undefined;
  size: number;
  half: number;
  chosen: number | null = null;
  painted = 0;
  shown = { trails: true, arrows: false, circles: false };
  portraitSeen: Portrait | null = null;
  held = false;
  labels: Uint8Array;

  constructor(root: ParentNode, data: ChargesData) {
    super(root, data, { api: "api/charges", styles: "losses/charges/charges.css", ahead: 1 });
    const arrow = (x: number, y: number, by = 0) => {
      return (event: KeyboardEvent) => {
        if (event.shiftKey && this.chosen !== null) return this.push(x, y);
        return by ? this.step(by) : false;
      };
    };
    Object.assign(this.keys, {
      ArrowLeft: arrow(-1, 0, -1),
      ArrowRight: arrow(1, 0, 1),
      ArrowUp: arrow(0, 1),
      ArrowDown: arrow(0, -1),
      ",": () => this.choose(-1),
      ".": () => this.choose(1),
    });
  }

  empty() {
    return new History();
  }

  // ---- elements
  dom() {
    this.frame = el(
      "div",
      {
        class: "frame",
        tabindex: 0,
        role: "group",
        "aria-label":
          "the charges: space plays and pauses, left and right arrows step, home resets, comma and full stop choose a point, shift and arrows move it",
      },
      this.canvas,
    );
    this.frame.addEventListener("keydown", (e) => this.key(e));
    this.canvas.addEventListener("pointerdown", (e) => this.drag(e));
    this.canvas.addEventListener("pointermove", (e) => this.hover(e));
    const stage = div(
      "stage three",
      div("left", this.frame, transport(this, "step"), this.readout, this.notice, this.live),
      div(
        "middle",
        this.curves.whole,
        el(
          "div",
          {},
          el("h4", {}, "Phase portrait: density of triplets by their two distances"),
          this.portrait,
          div("below", this.outer, this.inner, keyMark("dotted", "d(a, n) = d(a, p)")),
          this.portraitText,
        ),
      ),
      this.side,
    );
    const { row, text } = this.presets;
    return div("lab", ...(this.hidden.has("presets") ? [] : [row, text]), stage);
  }

  controls() {
    const { options, state, hidden } = this,
      { law } = this.now,
      { limits } = options;
    const choose = (key: "miner" | "optimiser" | "normalise", label: string) =>
      choice(label, options[key], law[key], (value) => {
        law[key] = value;
        this.commit();
      });
    const rate = control(
      {
        name: "step size",
        symbol: "\\eta",
        help: "Distance that a point moves per step and unit force; for RMSprop and Adam, about the distance per step",
        low: 0.001,
        high: 1,
        log: true,
        step: 0.001,
        default: 0.05,
      },
      law.step_size,
      {
        onInput: (x: number) => {
          law.step_size = Math.min(Math.max(x, limits.rate[0]), limits.rate[1]);
        },
        onRest: () => this.commit(),
      },
    );
    setText(rate.querySelector(".symbol"), "η");
    const sides = el(
      "div",
      { class: "pills", role: "group", "aria-label": "Which forces act" },
      ...Object.entries(options.side).map(([v, o]) =>
        el(
          "button",
          {
            "aria-pressed": String(v === law.side),
            title: o.help,
            onclick: () => {
              law.side = v;
              this.commit();
            },
          },
          v,
        ),
      ),
    );
    const show = (key: keyof Shown, text: string, title: string) =>
      tick(this.shown, key, text, title, () => this.invalidate());
    const [lossChoice, lossSliders] = lossPanel(this.schema, law, {
      hidden,
      onInput: () => this.draft(),
      onRest: () => this.commit(),
      onLoss: () => this.commit(),
    });
    const about = this.schema.losses[law.loss];
    lossChoice.append(
      formula(about.latex),
      el("p", { class: "caption" }, about.sentence, " ", el("small", {}, about.source)),
    );
    this.python = el("pre", { tabindex: 0 }, this.pythonText ?? "");
    this.files = ["npz", "json"].map((kind) =>
      el(
        "a",
        { class: "button", "data-kind": kind, download: true },
        `History, ${kind === "npz" ? "npz" : "JSON"}`,
      ),
    );
    this.links();
    const count = (key: "classes" | "per_class", label: string) =>
      el("label", {}, label, numberBox(this, key, label, [2, limits[key]]));
    return [
      ...(hidden.has("loss") ? [] : [lossChoice, lossSliders]),
      ...this.section(
        "motion",
        "Motion",
        div(
          "fields",
          choose("miner", "triplets"),
          choose("optimiser", "optimiser"),
          choose("normalise", "plane"),
        ),
        rate,
        sides,
      ),
      ...this.section(
        "start",
        "Start",
        div(
          "fields",
          choice("start", options.start, state.start, (start) => this.restart({ start })),
          count("classes", "classes"),
          count("per_class", "per class"),
          seedField(this),
        ),
      ),
      ...this.section(
        "shown",
        "Shown",
        div(
          "switches",
          show("trails", "trails", "the last 40 steps"),
          show(
            "circles",
            "class circles",
            "Circle around the mean of each class through its farthest point",
          ),
          show("arrows", "force arrows", "Force F on each point; length 34 F / (F + 1) pixels"),
        ),
      ),
      ...this.section(
        "take",
        "Export",
        el(
          "div",
          { class: "pills" },
          ...presentButton(this),
          el("button", { onclick: () => this.figure() }, "Figure, PNG"),
          ...exportLinks(this.data.base, "charges", () => String(this.drawing()), {
            svg: "SVG",
            pdf: "PDF",
          }),
          ...this.files,
        ),
        el("details", {}, el("summary", {}, "Python that repeats this"), this.python),
      ),
    ];
  }

  onTheme() {
    this.portraitSeen = null;
  }

  onStateReplaced() {
    this.chosen = null;
  }

  // ---- requests to Python
  ask(more: Partial<TimelineRequest<Spec>> = {}) {
    super.ask({ show: more.want ?? this.at, ...more });
  }

  onAnswer({ labels }: ChargesAnswer) {
    this.labels = labels;
  }

  onDraft(answer: ChargesAnswer) {
    this.history.preview(answer);
    this.invalidate();
  }

  arrive(step: number) {
    super.arrive(step);
    if (!this.playing) return;
    const { measures } = this.history.at(step);
    if (
      step > 1 &&
      measures.largest_step < STILL &&
      this.history.at(step - 1).measures.largest_step < STILL
    )
      this.pause(
        measures.active > 0
          ? "Equilibrium: the forces balance and no point moves any more."
          : "At rest: no triplet is active, so all forces are zero.",
      );
  }

  to(step: number) {
    super.to(step);
    if (this.wanted === undefined && !this.history.at(this.at).portrait) this.ask();
  }

  // ---- changes
  settingsAt(step: number) {
    const { changes, law } = this.state;
    return { law: changes.filter((c) => c.at <= step && c.law).at(-1)?.law ?? law };
  }

  // Return the spec with a change at the step shown; later steps are dropped.
  changedSpec(moved?: Moved) {
    const { law } = this.now,
      spec = clone(this.state),
      k = this.at,
      kept = spec.changes.filter((c) => c.at < k),
      here = spec.changes.find((c) => c.at === k) ?? { at: k, law: null, moved: [] };
    if (moved)
      here.moved = [...here.moved.filter(([i]) => i !== moved[0]), moved].slice(
        -this.options.limits.moved,
      );
    else if (k === 0) {
      spec.law = clone(law);
      here.law = null;
    } else
      here.law =
        JSON.stringify(law) === JSON.stringify(this.settingsAt(k - 1).law) ? null : clone(law);
    spec.changes = [...kept, ...(here.law || here.moved.length ? [here] : [])];
    return spec;
  }

  draft(moved?: Moved) {
    if (!this.drafting) this.hold();
    const { at } = this;
    this.ask({ state: this.changedSpec(moved), draft: true, have: at - 1, want: at, show: at });
  }

  commit(moved?: Moved) {
    const played = this.release();
    this.change(this.changedSpec(moved), this.at, played);
  }

  restart(change: Partial<Spec>) {
    const { classes, per_class } = { ...this.state, ...change },
      most = Math.floor(this.options.limits.points / classes);
    super.restart({ ...change, per_class: Math.min(per_class, most) });
  }

  // ---- link
  onLink({ python = "" }: ChargesAnswer) {
    this.pythonText = python;
    setText(this.python, python);
    this.links();
  }

  links() {
    for (const a of this.files) a.href = this.file(`history.${a.dataset.kind}`);
  }

  describeStep() {
    const frame = this.history.at(this.at);
    return frame
      ? `step ${this.at}, loss ${number(frame.measures.loss)}, MAP@R ${number(frame.measures.map_at_r)}`
      : "";
  }

  defaultNotice() {
    const { capped = 0 } = this.history.at(this.at) ?? {};
    return capped
      ? `${capped} point${capped > 1 ? "s" : ""} would have moved farther than ${this.options.limits.stride} in this step and were limited to that distance.`
      : "";
  }

  // Return the step shown as it is drawn.
  drawing() {
    const query = new URLSearchParams(this.address || location.search),
      flags = { ...this.shown, dark: this.theme === "dark" };
    query.set("step", String(this.at));
    for (const [name, on] of Object.entries(flags)) query.set(name, String(Number(on)));
    return query;
  }

  // ---- gestures
  nearest(event: PointerEvent) {
    const frame = this.history.at(this.at);
    if (!frame) return null;
    const at = toPixels(this.half, this.size),
      [px, py] = within(event, this.canvas);
    let best = null,
      least = event.pointerType === "touch" ? 24 : 13;
    for (let i = 0; i < this.labels.length; i++) {
      const [x, y] = at(frame.positions[2 * i], frame.positions[2 * i + 1]),
        d = Math.hypot(x - px, y - py);
      if (d < least) [best, least] = [i, d];
    }
    return best;
  }

  hover(event: PointerEvent) {
    if (!this.held) this.frame.classList.toggle("near", this.nearest(event) !== null);
  }

  drag(event: PointerEvent) {
    const index = this.nearest(event);
    this.frame.focus({ preventScroll: true });
    if (index === null) {
      this.chosen = null;
      return this.invalidate();
    }
    event.preventDefault();
    const half = this.half;
    this.hold();
    this.held = true;
    this.chosen = index;
    this.frame.classList.add("held");
    let last: Moved | null = null;
    const move = (e: PointerEvent) => {
      const clip = (v: number) => Math.min(Math.max(v, 0), this.size),
        [px, py] = within(e, this.canvas),
        [x, y] = fromPixels(half, this.size)(clip(px), clip(py));
      last = [index, Number(x.toFixed(4)), Number(y.toFixed(4))];
      this.history.setPoint(this.at, last);
      this.invalidate();
      this.draft(last);
    };
    follow(event, this.canvas, move, () => {
      this.held = false;
      this.frame.classList.remove("held");
      if (last) return this.commit(last);
      if (this.release()) this.play();
      else this.invalidate();
    });
  }

  // Choose a point by keyboard.
  choose(turn: number) {
    const n = this.labels?.length ?? 0;
    this.chosen = ((this.chosen ?? (turn > 0 ? -1 : 0)) + turn + n) % n;
    const { positions } = this.history.at(this.at);
    this.live.textContent = `point ${this.chosen}, class ${this.labels[this.chosen] + 1}, at ${number(positions[2 * this.chosen])}, ${number(positions[2 * this.chosen + 1])}`;
    this.invalidate();
  }

  push(right: number, up: number) {
    const { positions } = this.history.at(this.at),
      index = Number(this.chosen),
      by = this.half / 40,
      [x, y] = positions.subarray(2 * index);
    this.commit([index, Number((x + by * right).toFixed(4)), Number((y + by * up).toFixed(4))]);
  }

  // ---- drawing
  resize() {
    this.size = this.frame.clientWidth;
    fit([this.canvas, this.portrait, ...this.curves.canvases]);
    this.portraitSeen = null;
    this.invalidate();
  }

  paint() {
    const { history, at, theme } = this,
      frame = history.at(at);
    if (!frame || !this.size) return;
    const m = frame.measures;
    if (!this.held) this.half = halfWidth(frame.positions);
    this.paintPoints(drawing(this.canvas), this.size, this.chosen);
    this.curves.paint({ last: history.last, step: at }, theme, {
      history,
      step: at,
      classes: CLASS[theme],
    });
    if (frame.portrait && this.portraitSeen !== frame.portrait) {
      this.portraitSeen = frame.portrait;
      paintPortrait(
        drawing(this.portrait),
        this.portrait.clientWidth,
        this.portrait.clientHeight,
        frame.portrait,
        theme,
      );
      this.tellPortrait(frame.portrait);
    }
    this.progress();
    const rows: [string, number][] = [
      ["loss", m.loss],
      ["active", m.active],
      ["mean pull", m.pull],
      ["mean push", m.push],
      ["MAP@R", m.map_at_r],
      ["covering", m.covering],
    ];
    readouts(this.readout, [
      ...rows.map(([name, v]) => [name, number(v)] as [string, string]),
      ["triplets", frame.triplets.toLocaleString("en")],
    ]);
    this.canvas.setAttribute(
      "aria-label",
      `${this.labels.length} points of ${frame.radii.length} classes at step ${at}: loss ${number(m.loss)}, active ${number(m.active)}, MAP@R ${number(m.map_at_r)}, class radii ${[...frame.radii].map(number).join(", ")}`,
    );
    this.canvas.dataset.step = String(at);
    this.canvas.dataset.half = String(this.half);
    this.canvas.dataset.seq = String(++this.painted);
  }

  paintPoints(ctx: CanvasRenderingContext2D, size: number, chosen: number | null) {
    paintCharges(ctx, size, this.history, this.at, this.labels, this.shown, this.theme, {
      half: this.half,
      chosen,
      circle: this.settingsAt(this.at).law.normalise !== "none",
    });
  }

  tellPortrait(p: Portrait) {
    this.outer.style.display = p.outer.length ? "" : "none";
    this.inner.style.display = p.inner.length ? "" : "none";
    const assumed = [p.third_edge && "d(p, n) = d(a, n)", p.norms && "|a| = |p| = |n| = 1"].filter(
      Boolean,
    );
    const share = `${(100 * p.violated).toFixed(1)} % of ${p.valid.toLocaleString("en")} triplets have a negative nearer than the positive.`;
    const note = assumed.length
      ? `This loss depends on more than these two distances; its lines assume ${assumed.join(" and ")}.`
      : "";
    this.portraitText.textContent = [
      share,
      "Stronger colour: more triplets (logarithmic scale).",
      note,
    ]
      .filter(Boolean)
      .join(" ");
    this.portrait.setAttribute(
      "aria-label",
      `phase portrait over distances 0 to ${p.reach}: ${share} ${note}`,
    );
  }

  figure() {
    const copy = el("canvas", { width: 1400, height: 1400 }),
      ctx = drawing(copy),
      { start, seed } = this.state;
    ctx.setTransform(2, 0, 0, 2, 0, 0);
    this.paintPoints(ctx, 700, null);
    copy.toBlob((blob) => save(`charges-${start}-${seed}-${this.at}.png`, blob));
  }
}

export const { render, unmount } = defineComponent(Charges);
