// Thresholds page: distributions of pairs with a threshold to drag, its errors, and the pairs on
// both sides. Python sends all numbers once; everything that follows the threshold is done here.
import type { Attributes, SetState, Theme } from "../../kit/types.ts";
import type {
  Curves,
  Ends,
  Kind,
  Look,
  Pairs,
  Rate,
  Recommended,
  Side,
  ThresholdData,
} from "./types.ts";
import { defineComponent, loadStyles, newTheme } from "../../kit/component.ts";
import { keyMark } from "../../kit/controls.ts";
import { div, drawing, el, setText } from "../../kit/dom.ts";
import { scrubbed, within as place } from "../../kit/hand.ts";
import { fit } from "../../kit/screen.ts";
import { decode } from "../../kit/socket.ts";
import { closest, density, rateAt, worstClasses } from "./curves.ts";
import { paintClasses, paintDistributions, paintErrors, scale } from "./figures.ts";
import { figure, group } from "./pairs.ts";

const RECOMMENDED = 2, // value of look.t
  REST = 400, // ms until a gesture with keys counts as ended
  IMAGES = 120, // ms between two changes of the images during a drag
  WRONG = 6, // pairs in a group of errors
  NARROW = 880, // px of width below which there are half as many
  CORRECT = 2, // pairs in a group of correct decisions
  WORST = 5, // classes listed
  FEW = 10; // seen classes below which intervals are too narrow
const GROUPS: { kind: Kind; above: boolean; title: string; what: string }[] = [
  { kind: "same", above: false, title: "✗ Missed", what: "same class, below the threshold" },
  { kind: "different", above: true, title: "✗ False matches", what: "different classes, accepted" },
  { kind: "different", above: false, title: "✓ Kept apart", what: "different classes, below" },
  { kind: "same", above: true, title: "✓ Found", what: "same class, accepted" },
];
const RATES: Record<Rate, string> = { fmr: "False matches", fnmr: "Missed matches" };

export const percent = (value: number) => {
  const share = 100 * value;
  return share === 0 || share === 100
    ? `${share} %`
    : share < 0.01
      ? "< 0.01 %"
      : `${share >= 10 ? share.toFixed(0) : share.toPrecision(2)} %`;
};
const interval = ([low, high]: Ends) => `${percent(low).replace(" %", "")} to ${percent(high)}`;
const number = (t: number) => t.toFixed(3).replace("-", "−");

class Thresholds {
  root: HTMLElement;
  data: ThresholdData;
  look: Look;
  whole: HTMLDivElement;
  ready: Promise<unknown>;
  observer: ResizeObserver | undefined;
  sentence: HTMLParagraphElement | undefined;
  more: HTMLParagraphElement | undefined;
  promises: HTMLDivElement | undefined;
  advice: HTMLElement | undefined;
  canvas: HTMLCanvasElement | undefined;
  handle: HTMLDivElement | undefined;
  grip: HTMLSpanElement | undefined;
  mark: HTMLButtonElement | undefined;
  errors: { same: HTMLCanvasElement; different: HTMLCanvasElement } | undefined;
  plot: HTMLDivElement | undefined;
  legend: HTMLDivElement | undefined;
  numbers: HTMLTableElement | undefined;
  head: HTMLHeadingElement | undefined;
  length: HTMLParagraphElement | undefined;
  sides: HTMLDivElement | undefined;
  orders: HTMLDivElement | undefined;
  unlinked: HTMLParagraphElement | undefined;
  groups:
    { count: HTMLSpanElement; list: HTMLUListElement; title: string; what: string }[] | undefined;
  classCanvas: HTMLCanvasElement | undefined;
  classLine: HTMLDivElement | undefined;
  classPlot: HTMLDivElement | undefined;
  curvePills: HTMLDivElement | undefined;
  classWords: HTMLParagraphElement | undefined;
  worst: HTMLOListElement | undefined;
  table: HTMLTableElement | undefined;
  offer: HTMLButtonElement | undefined;
  baselines: HTMLElement | undefined;
  curves: Curves | undefined;
  pairs: Partial<Record<Side, Pairs>> = {};
  fetched: Partial<Record<Side, Promise<Pairs>>> = {};
  densities: Partial<Record<Side, Record<Kind, Float64Array>>> = {};
  setState: SetState;
  trigger: SetState;
  theme: Theme;
  k = 0; // index of the threshold
  width = 0; // px of the figures
  classWidth = 0;
  shownPairs = "";
  shownClasses = "";
  known = ""; // display settings that Python knows
  frame: number | undefined;
  waiting: ReturnType<typeof setTimeout> | undefined;
  telling: ReturnType<typeof setTimeout> | undefined;

  constructor(root: HTMLElement, data: ThresholdData) {
    this.root = root;
    this.data = data;
    this.look = { ...data.look };
    this.whole = div("lab thresholds");
    this.whole.hidden = true;
    root.append(this.whole);
    this.ready = this.build();
  }

  async build() {
    const [, curves] = await Promise.all([
      loadStyles(this.root, "inspection/thresholds/thresholds.css"),
      this.fetchFile("curves").catch((error) => error),
    ]);
    this.theme = "light";
    this.whole.hidden = false;
    if (curves instanceof Error) {
      this.whole.replaceChildren(
        el("p", { class: "failed", role: "alert" }, `The pairs cannot be shown. ${curves.message}`),
        el("button", { onclick: () => location.reload() }, "Reload the page"),
      );
      return;
    }
    this.curves = curves as Curves;
    for (const side of Object.keys(this.curves.sides) as Side[])
      this.densities[side] = {
        same: density(this.curves, side, "same"),
        different: density(this.curves, side, "different"),
      };
    if (!this.curves.sides[this.look.side]) this.look.side = "unseen";
    this.dom();
    this.place();
    this.restyle();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.whole);
    this.settle();
  }

  async fetchFile(name: string) {
    const answer = await fetch(`${this.data.address}${name}.bin`);
    if (!answer.ok) throw new Error((await answer.text()) || "Reload the page.");
    return decode(await answer.arrayBuffer());
  }

  async update(data: ThresholdData) {
    const text = JSON.stringify(data.look);
    if (this.known && text !== this.known) Object.assign(this.look, data.look);
    this.known = text;
    const moved = data.address !== this.data.address;
    this.data = data;
    await this.ready;
    if (moved) {
      Object.assign(this, { curves: undefined, pairs: {}, fetched: {}, densities: {} });
      Object.assign(this, { shownPairs: "", shownClasses: "" });
      this.observer?.disconnect();
      this.look = { ...data.look };
      this.ready = this.build();
      return;
    }
    if (!this.curves) return;
    this.place();
    this.restyle();
    this.settle();
  }

  close() {
    this.observer?.disconnect();
    clearTimeout(this.telling);
    clearTimeout(this.waiting);
    if (this.frame) cancelAnimationFrame(this.frame);
  }

  // ---- elements
  dom() {
    const hasSeen = Boolean(this.facts("seen"));
    this.sentence = el("p", { class: "sentence", role: "status" });
    this.more = el("p", { class: "caption" });
    this.promises = el("div", {
      class: "pills",
      role: "group",
      "aria-label": "promised false match rate",
    });
    this.advice = el(
      "section",
      { class: "advice", "aria-label": "recommended threshold" },
      div("try", el("span", {}, "At most this share of false matches:"), this.promises),
      this.sentence,
      this.more,
    );
    this.advice.hidden = !hasSeen;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.handle = el("div", {
      class: "threshold",
      role: "slider",
      tabindex: 0,
      "aria-label": "threshold of the cosine similarity",
      "aria-orientation": "horizontal",
      onkeydown: (event) => this.pressed(event),
    });
    this.grip = el("span", { class: "grip" });
    this.handle.append(this.grip);
    this.mark = el("button", {
      class: "mark",
      title: "Recommended threshold: move the threshold there",
      onclick: () => this.recommend(this.look.fmr),
    });
    this.errors = {
      same: el("canvas", { "aria-hidden": "true" }),
      different: el("canvas", { "aria-hidden": "true" }),
    };
    this.plot = div("plot", this.canvas, ...Object.values(this.errors), this.mark, this.handle);
    this.listen(this.plot);
    this.legend = div("legend");
    this.numbers = el("table", { class: "rates" });
    this.head = el("h3", {});
    this.length = el("p", { class: "caption" });
    this.sides = el("div", { class: "pills", role: "group", "aria-label": "classes shown" });
    this.orders = el("div", { class: "pills", role: "group", "aria-label": "order of the errors" });
    this.unlinked = el("p", { class: "caption" }, "Failures and Explore show test classes only.");
    this.groups = GROUPS.map(({ title, what }) => ({
      count: el("span", { class: "count" }),
      list: el("ul", {}),
      title,
      what,
    }));
    this.classCanvas = el("canvas", { "aria-hidden": "true" });
    this.classLine = div("line");
    this.classPlot = div("plot classes", this.classCanvas, this.classLine);
    this.listen(this.classPlot);
    this.curvePills = el("div", {
      class: "pills",
      role: "group",
      "aria-label": "rate of each class",
    });
    this.classWords = el("p", { class: "caption" });
    this.worst = el("ol", { class: "worst" });
    this.table = el("table", { class: "baselines" });
    this.offer = el("button", { onclick: () => this.compute() });
    this.baselines = el(
      "section",
      {},
      el("h3", {}, "Compared with baselines"),
      this.table,
      el(
        "p",
        { class: "caption" },
        "Each with its own threshold for the rate chosen above. × promise: measured by promised rate; 1 keeps the promise.",
      ),
      this.offer,
    );
    this.baselines.hidden = !hasSeen;
    this.whole.replaceChildren(
      this.advice,
      div(
        "main",
        div("", this.plot, this.legend),
        div(
          "side",
          this.head,
          this.length,
          this.numbers,
          ...(hasSeen ? [el("h4", {}, "Classes shown"), this.sides] : []),
        ),
      ),
      el(
        "section",
        { class: "pairs", "aria-label": "pairs on both sides of the threshold" },
        div("bar", el("h3", {}, "Pairs on both sides"), el("span", {}, "Errors:"), this.orders),
        this.unlinked,
        div(
          "groups",
          ...this.groups.map(({ title, what, count, list }) =>
            el("section", {}, el("h4", {}, el("b", {}, title), " ", what, " ", count), list),
          ),
        ),
      ),
      el(
        "section",
        {},
        div("bar", el("h3", {}, "Class by class"), this.curvePills),
        div("main", this.classPlot, div("side", this.classWords, this.worst)),
      ),
      this.baselines,
    );
    this.chooseRow(this.sides, this.data.menus.side, "side");
    this.chooseRow(this.orders, this.data.menus.order, "order");
    this.chooseRow(this.curvePills, this.data.menus.curve, "curve");
    for (const { promised } of this.curves?.recommended ?? []) {
      const rate = String(promised);
      this.promises.append(
        el(
          "button",
          { "data-value": rate, onclick: () => this.recommend(rate) },
          `${100 * promised} %`,
        ),
      );
    }
  }

  chooseRow(box: HTMLElement, titles: Record<string, string>, name: "side" | "order" | "curve") {
    box.append(
      ...Object.entries(titles).map(([value, title]) =>
        el(
          "button",
          {
            "data-value": value,
            onclick: () => {
              Object.assign(this.look, { [name]: value });
              this.restyle();
              this.settle();
              this.report();
            },
          },
          title,
        ),
      ),
    );
  }

  listen(plot: HTMLElement) {
    scrubbed(
      plot,
      (event) => {
        if (!this.curves || event.button > 0) return; // -1 while the pointer moves
        const [x] = place(event, plot);
        this.move(closest(this.curves.thresholds, scale(this.curves, plot.clientWidth).t(x)));
        if (event.type === "pointerdown") this.handle?.focus({ preventScroll: true });
      },
      () => {
        this.settle();
        this.report();
      },
    );
  }

  // ---- state
  facts(side: Side) {
    return this.curves?.sides[side];
  }

  get recommended(): Recommended | undefined {
    const all = this.curves?.recommended ?? [];
    return all.find(({ promised }) => String(promised) === this.look.fmr) ?? all[all.length - 1];
  }

  // Set the index of the threshold from the display settings.
  place() {
    if (!this.curves) return;
    const { thresholds } = this.curves,
      t = this.look.t === RECOMMENDED ? this.recommended?.threshold : this.look.t,
      start = t ?? this.equalErrors();
    this.k = closest(thresholds, start);
  }

  // Return the threshold at which both rates of the unseen classes are closest.
  equalErrors() {
    if (!this.curves) return 0;
    const { thresholds } = this.curves;
    let best = 0,
      least = Infinity;
    for (let k = 0; k < thresholds.length; k++) {
      const gap = Math.abs(
        rateAt(this.curves, "unseen", "fmr", k).value -
          rateAt(this.curves, "unseen", "fnmr", k).value,
      );
      if (gap < least) [best, least] = [k, gap];
    }
    return thresholds[best];
  }

  recommend(rate: string) {
    Object.assign(this.look, { fmr: rate, t: RECOMMENDED });
    this.place();
    this.restyle();
    this.settle();
    this.report();
  }

  move(k: number) {
    if (!this.curves) return;
    const last = this.curves.thresholds.length - 1;
    this.k = Math.min(Math.max(k, 0), last);
    this.look.t = Number(this.curves.thresholds[this.k].toFixed(5));
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.paint();
    });
    this.waiting ??= setTimeout(() => this.settle(), IMAGES);
  }

  pressed(event: KeyboardEvent) {
    const last = (this.curves?.thresholds.length ?? 1) - 1,
      far = event.shiftKey ? 10 : 1,
      to: Record<string, number> = {
        ArrowLeft: this.k - far,
        ArrowDown: this.k - far,
        ArrowRight: this.k + far,
        ArrowUp: this.k + far,
        PageDown: this.k - 20,
        PageUp: this.k + 20,
        Home: 0,
        End: last,
      };
    if (!(event.key in to) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.move(to[event.key]);
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      this.settle();
      this.report();
    }, REST);
  }

  // Report the display settings to Python, which writes them into the address.
  report() {
    clearTimeout(this.telling);
    this.known = JSON.stringify(this.look);
    this.setState("look", { ...this.look });
  }

  compute() {
    if (!this.offer) return;
    this.offer.disabled = true;
    setText(this.offer, "Computing …");
    this.trigger("compute", true);
  }

  // ---- drawing
  canvases() {
    const { canvas, errors, classCanvas } = this;
    return canvas && errors && classCanvas ? [canvas, ...Object.values(errors), classCanvas] : [];
  }

  resize() {
    if (!fit(this.canvases())) return;
    this.restyle();
    this.settle();
  }

  // Draw everything that does not follow the threshold, then the rest.
  restyle() {
    if (!this.curves || !this.plot || !this.canvas || !this.errors) return;
    if (!this.classCanvas || !this.classPlot) return;
    newTheme(this);
    this.whole.dataset.theme = this.theme;
    fit(this.canvases());
    for (const [box, value] of [
      [this.sides, this.look.side],
      [this.orders, this.look.order],
      [this.curvePills, this.look.curve],
      [this.promises, String(this.recommended?.promised)],
    ])
      for (const button of (box as HTMLElement).children)
        button.setAttribute(
          "aria-pressed",
          String((button as HTMLElement).dataset.value === value),
        );
    const { curves, theme } = this,
      { side } = this.look,
      at = { width: this.plot.clientWidth, height: this.plot.clientHeight },
      drawn = { curves, side, theme, densities: this.densities, ...at },
      { clientWidth, clientHeight } = this.classPlot,
      below = { width: clientWidth, height: clientHeight };
    Object.assign(this, { width: at.width, classWidth: clientWidth });
    paintDistributions(drawing(this.canvas), drawn);
    for (const kind of ["same", "different"] as const)
      paintErrors(drawing(this.errors[kind]), kind, drawn);
    const rate = this.look.curve;
    paintClasses(drawing(this.classCanvas), { curves, side, rate, theme, ...below });
    this.tellLegend();
    this.tellAdvice();
    this.tellBaselines();
    this.paint();
  }

  // Show what follows the threshold at once; nothing here reads the layout or paints.
  paint() {
    const { curves, errors, handle, classLine } = this;
    if (!curves || !errors || !handle || !classLine) return;
    const t = curves.thresholds[this.k],
      x = scale(curves, this.width).x(t);
    handle.style.transform = `translateX(${x}px)`;
    errors.same.style.clipPath = `inset(0 ${this.width - x}px 0 0)`;
    errors.different.style.clipPath = `inset(0 0 0 ${x}px)`;
    classLine.style.transform = `translateX(${scale(curves, this.classWidth).x(t)}px)`;
    this.tellNumbers(t);
  }

  tellNumbers(t: number) {
    const { curves, handle, numbers } = this;
    if (!curves || !handle || !numbers) return;
    const sides = (["unseen", "seen"] as Side[]).filter((side) => curves.sides[side]);
    if (!numbers.childElementCount)
      numbers.append(
        el(
          "tr",
          {},
          el("td", {}),
          ...sides.map((side) =>
            el(
              "th",
              { scope: "col" },
              curves.sides[side]?.name ?? "",
              ...(curves.sides.seen ? [el("small", {}, side)] : []),
            ),
          ),
        ),
        ...Object.entries(RATES).map(([rate, title]) =>
          el(
            "tr",
            { class: rate },
            el(
              "th",
              { scope: "row" },
              title,
              el("small", {}, "95 % interval"),
              el("small", {}, "pairs"),
            ),
            ...sides.map(() => el("td", {}, el("b", {}), el("small", {}), el("small", {}))),
          ),
        ),
        el(
          "tr",
          {},
          el(
            "th",
            { scope: "row", title: "Rate at the threshold where both rates are equal" },
            "Equal error rate",
          ),
          ...sides.map((side) =>
            el(
              "td",
              {},
              el("b", {}, percent(curves.sides[side]?.eer ?? NaN)),
              el("small", {}, interval(curves.sides[side]?.eer_within ?? [NaN, NaN])),
            ),
          ),
        ),
      );
    setText(this.head ?? null, `Threshold ${number(t)}`);
    setText(
      this.length ?? null,
      `Unit vectors at a distance of at most ${Math.sqrt(Math.max(0, 2 - 2 * t)).toFixed(3)} are accepted.`,
    );
    const spoken: string[] = [];
    (["fmr", "fnmr"] as Rate[]).forEach((rate, i) =>
      sides.forEach((side, j) => {
        const { value, count, of, within } = rateAt(curves, side, rate, this.k),
          cell = numbers.rows[i + 1].cells[j + 1];
        setText(cell.children[0], percent(value));
        setText(cell.children[1], interval(within));
        setText(cell.children[2], `${count.toLocaleString("en")} of ${of.toLocaleString("en")}`);
        if (side === this.look.side) spoken.push(`${percent(value)} ${RATES[rate].toLowerCase()}`);
      }),
    );
    const { thresholds } = curves;
    for (const [name, value] of Object.entries({
      "aria-valuemin": thresholds[0].toFixed(3),
      "aria-valuemax": thresholds[thresholds.length - 1].toFixed(3),
      "aria-valuenow": t.toFixed(3),
      "aria-valuetext": `${t.toFixed(3)}: ${spoken.join(", ")}`,
    }))
      handle.setAttribute(name, value);
  }

  tellLegend() {
    const { look, legend } = this;
    const other = this.facts(look.side === "seen" ? "unseen" : "seen");
    legend?.replaceChildren(
      keyMark("same", "same class"),
      keyMark("different", "different classes"),
      keyMark("error", "full colour: errors"),
      ...(other ? [keyMark("dashed", other.name)] : []),
      ...(this.recommended ? [keyMark("triangle", "recommended threshold")] : []),
      el("span", { class: "key" }, "Height: square root of the share of pairs"),
    );
  }

  tellAdvice() {
    const { curves, mark } = this,
      found = this.recommended;
    if (!curves || !mark) return;
    mark.hidden = !found;
    if (!found) {
      setText(
        this.sentence ?? null,
        "The seen classes have too few pairs to promise a false match rate. Add validation classes or samples.",
      );
      return;
    }
    mark.style.transform = `translateX(${scale(curves, this.width).x(found.threshold)}px)`;
    this.sentence?.replaceChildren(
      `Recommended threshold for ${100 * found.promised} % false matches: `,
      el("b", {}, number(found.threshold)),
      ". Expect ",
      el("b", {}, percent(found.fmr)),
      ` (${interval(found.fmr_within)}) on unseen classes.`,
    );
    const [low, high] = found.within,
      classes = this.facts("seen")?.classes ?? 0,
      few =
        classes < FEW
          ? ` With only ${classes} seen classes, expect wider intervals than these.`
          : "";
    setText(
      this.more ?? null,
      `That is ${found.ratio.toPrecision(2)} times the promise (${found.ratio_within.map((x) => x.toPrecision(2)).join(" to ")}). ` +
        `It misses ${percent(found.fnmr)} (${interval(found.fnmr_within)}) of the pairs of the same class. ` +
        `Interval of the threshold: ${number(low)} to ${number(high)}.${few}`,
    );
  }

  tellBaselines() {
    const { table, offer } = this,
      { rows, offer: text } = this.data.baselines;
    if (!table || !offer) return;
    offer.hidden = !text;
    offer.disabled = false;
    setText(offer, text);
    const cell = (value: string, small: string = "", more: Attributes = {}) =>
      el("td", more, value, ...(small ? [el("small", {}, small)] : []));
    table.replaceChildren(
      el(
        "tr",
        {},
        el("td", {}),
        ...["threshold", "false matches", "× promise", "missed", "equal error rate"].map(
          (title, i) =>
            el("th", { scope: "col", class: i === 0 || i === 4 ? "wide" : null }, title),
        ),
      ),
      ...rows.map(({ name, recommended }, i) => {
        const found = recommended.find(({ promised }) => promised === this.recommended?.promised);
        return el(
          "tr",
          { class: i ? null : "own" },
          el("th", { scope: "row" }, name),
          ...(found
            ? [
                cell(number(found.threshold), found.within.map(number).join(" to "), {
                  class: "wide",
                }),
                cell(percent(found.fmr), interval(found.fmr_within)),
                cell(
                  found.ratio.toPrecision(2),
                  found.ratio_within.map((x) => x.toPrecision(2)).join(" to "),
                ),
                cell(percent(found.fnmr), interval(found.fnmr_within)),
                cell(percent(found.eer), interval(found.eer_within), { class: "wide" }),
              ]
            : [el("td", { colspan: 5 }, "cannot promise this rate")]),
        );
      }),
    );
  }

  // List the classes with the highest rates; the list follows the threshold.
  tellClasses(t: number) {
    const { curves, look, worst } = this,
      facts = this.facts(look.side);
    if (!curves || !facts || !worst) return;
    const found = worstClasses(curves, look.side, look.curve, t, WORST),
      key = look.side + look.curve + found.map(({ row }) => row).join();
    const shown = facts.class_names.length;
    setText(
      this.classWords ?? null,
      `${RATES[look.curve]} of each class${shown < facts.classes ? ` (the ${shown} of ${facts.classes.toLocaleString("en")} classes that deviate most)` : ""}; bold: median. Highest at this threshold:`,
    );
    if (key !== this.shownClasses) {
      this.shownClasses = key;
      worst.replaceChildren(
        ...found.map(({ row }) => {
          const name = facts.class_names[row],
            label = facts.class_labels[row],
            query = new URLSearchParams({ ...this.data.parameters, classes: String(label) });
          return el(
            "li",
            {},
            el("b", {}),
            " ",
            label === undefined
              ? el("span", {}, name)
              : el(
                  "a",
                  {
                    href: `explore?${query}`,
                    title: "Show this class on the map",
                    onclick: (event) => this.follow(event, "explore", { classes: label }),
                  },
                  name,
                ),
          );
        }),
      );
    }
    found.forEach(({ value }, i) => setText(worst.children[i].firstChild, percent(value)));
  }

  // ---- pairs
  // Show what follows the threshold a few times per second: lists and images.
  settle() {
    clearTimeout(this.waiting);
    this.waiting = undefined;
    if (this.curves) this.tellClasses(this.curves.thresholds[this.k]);
    this.showPairs();
  }

  async showPairs() {
    const { side } = this.look;
    if (!this.pairs[side]) {
      const fetched: Promise<Pairs> = (this.fetched[side] ??= this.fetchFile(
        `pairs-${side}`,
      ) as Promise<Pairs>);
      try {
        this.pairs[side] = await fetched;
      } catch (error) {
        delete this.fetched[side];
        for (const { list } of this.groups ?? [])
          list.replaceChildren(
            el("li", { class: "none" }, `The pairs cannot be loaded. ${(error as Error).message}`),
          );
        return;
      }
      if (side !== this.look.side) return;
    }
    const pairs = this.pairs[side],
      { curves, look, groups } = this;
    if (!pairs || !curves || !groups) return;
    if (this.unlinked) this.unlinked.hidden = side === "unseen" || this.data.set;
    const errors = this.whole.clientWidth < NARROW ? WRONG / 2 : WRONG,
      key = `${side} ${this.k} ${look.order} ${errors} ${JSON.stringify(this.data.parameters)}`;
    if (key === this.shownPairs) return;
    this.shownPairs = key;
    GROUPS.forEach(({ kind, above }, i) => {
      const wrong = above === (kind === "different"),
        found = group(
          pairs,
          kind,
          this.k,
          above,
          !wrong || look.order === "near",
          wrong ? errors : CORRECT,
        ),
        { list, count } = groups[i],
        accepted = curves[`${side}_${kind}`][this.k],
        total = above ? accepted : (this.facts(side)?.[kind] ?? 0) - accepted,
        ids = found.map(({ samples }) => samples.join()).join(" ");
      setText(
        count,
        total
          ? `${found.length < total ? `${found.length} of ` : ""}${total.toLocaleString("en")}`
          : "none",
      );
      if (list.dataset.pairs === ids) return;
      list.dataset.pairs = ids;
      list.replaceChildren(
        ...(found.length
          ? found.map((pair) =>
              figure(pair, this.data, (page, of) => this.trigger("open", { page, ...of })),
            )
          : [el("li", { class: "none" }, "No pair.")]),
      );
    });
  }

  follow(event: MouseEvent, page: string, of: Record<string, number>) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault(); // following the link would load the whole app again
    this.trigger("open", { page, ...of });
  }
}

export const { render, unmount } = defineComponent(Thresholds);
