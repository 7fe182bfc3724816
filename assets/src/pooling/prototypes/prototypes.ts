// Prototypes page: local features in the plane, their cells, and how much of them the average of
// one image retains.
import type {
  Measure,
  One,
  Plane,
  PrototypesData,
  PrototypesRequest,
  Shows,
  View,
} from "./types.ts";
import type { Slider } from "../../kit/types.ts";
import { Asking } from "../../kit/asking.ts";
import { defineComponent } from "../../kit/component.ts";
import { control, menu, switches } from "../../kit/controls.ts";
import { drawing, el, save, show as number, writeAddress } from "../../kit/dom.ts";
import { exportLinks } from "../../kit/export.ts";
import { fit } from "../../kit/screen.ts";
import { Story } from "../story/story.ts";
import {
  bitmap,
  paintBars,
  paintClose,
  paintImage,
  paintPlane,
  patchesOf,
  scaleOf,
  swatch,
} from "./draw.ts";

const MEASURES: [name: Measure, title: string, help: string][] = [
  ["hull_iou", "hull IoU", "Intersection over union of the two hulls"],
  [
    "histogram_intersection",
    "histogram intersection",
    "Sum over prototypes of the smaller share; needs no threshold",
  ],
  [
    "active_jaccard",
    "active Jaccard",
    "Prototypes active in both classes over those active in either",
  ],
  ["hull_separation", "hull separation", "Distance between the hulls; 0 if they touch"],
  [
    "membership_rate",
    "inside the other",
    "Share of the averages of one class inside the hull of the other: first in second | second in first",
  ],
];
const SHOWN: [keyof Shows, string][] = [
  ["features", "features"],
  ["patches", "patches"],
  ["hulls", "hulls"],
  ["averages", "averages"],
];
const REACH = 12; // search radius around the pointer, px
const percent = (x: number) => `${(100 * x).toFixed(x > 0.995 && x < 1 ? 1 : 0)} %`;

class Prototypes extends Asking<PrototypesData, PrototypesRequest, Plane> {
  view: View;
  plane: HTMLCanvasElement;
  close_up: HTMLCanvasElement;
  large: HTMLCanvasElement;
  bars: HTMLCanvasElement;
  canvases: HTMLCanvasElement[];
  title = el("h4", {});
  bound = el("div", {
    class: "bound",
    role: "group",
    "aria-label": "the bound for this image",
  });
  under = el("p", { class: "caption" });
  count = el("p", { class: "count" });
  notice = el("p", { class: "caption notice", role: "status" });
  live = el("div", { class: "hidden", "aria-live": "polite" });
  sheet = el("div", {
    class: "sheet",
    role: "listbox",
    "aria-label": "images of the class",
    tabindex: 0,
  });
  kinds = el("div", { class: "pills", role: "group", "aria-label": "class of the image" });
  tip = el("div", { class: "tip", hidden: true });
  side = el("div", { class: "panel" });
  table = el("table", { class: "overlaps" });
  all = el("p", { class: "caption" });
  shown = el("div", { class: "pills", role: "group", "aria-label": "classes with hulls" });
  pooling: HTMLDivElement;
  most: number;
  note: HTMLParagraphElement;
  tiled: string;
  patches: (HTMLCanvasElement & { width: number; height: number })[];
  pixels: HTMLCanvasElement & { width: number; height: number };
  writing: number;
  barAt: (px: number) => number;

  hover = -1; // prototype under the pointer
  pointed = -1; // row under the pointer
  shows = { features: true, patches: true, hulls: true, averages: true };
  seen: string | null = null; // key of the plane that is loaded
  reading: Plane = undefined as any; // undefined until the first answer
  one: One;
  renew = false;
  story = new Story(this, "prototypes", { next: ["transport", "a gate"] });

  constructor(root: ParentNode, data: PrototypesData) {
    super(root, data, { api: "api/prototypes", styles: "pooling/prototypes/prototypes.css" });
    this.view = structuredClone(data.view);
  }

  onReady() {
    this.panel();
    for (const canvas of this.canvases) this.observer.observe(canvas);
    this.resize();
    this.ask();
  }

  // ---- elements
  dom() {
    const canvas = (name: string, more = {}) =>
      el("canvas", { class: name, role: "img", "aria-label": name, ...more });
    this.plane = canvas("plane", { role: "application", tabindex: 0 });
    this.close_up = canvas("close");
    this.large = canvas("large");
    this.bars = canvas("bars");
    this.canvases = [this.plane, this.close_up, this.large, this.bars];
    this.plane.addEventListener("pointermove", (e) => this.point(e));
    this.plane.addEventListener("pointerleave", () => this.look(-1, -1));
    this.plane.addEventListener("click", (e) => {
      this.point(e);
      if (this.pointed >= 0) this.take(this.pointed);
    });
    this.plane.addEventListener("keydown", (e) => this.key(e));
    this.bars.addEventListener("pointermove", (e) => this.look(this.barAt?.(e.offsetX) ?? -1, -1));
    this.bars.addEventListener("pointerleave", () => this.look(-1, -1));
    this.sheet.addEventListener("keydown", (e) => this.key(e));
    return el(
      "div",
      { class: "lab" },
      this.notice,
      el(
        "div",
        { class: "stage three" },
        el(
          "div",
          { class: "left" },
          el("div", { class: "frame" }, this.plane, this.tip),
          this.story.whole,
          el(
            "div",
            { class: "legend" },
            el("span", {}, el("i", { class: "ring" }), "average"),
            el("span", {}, el("i", { class: "diamond" }), "prototype combination"),
            el("span", {}, el("i", { class: "own" }), "features of the image"),
            el("span", {}, el("i", { class: "cell" }), "share of a cell"),
          ),
          this.under,
          ...(this.hidden.has("overlap")
            ? []
            : [
                el(
                  "section",
                  { class: "overlap" },
                  el("h4", {}, "Overlap of the classes"),
                  el("div", { class: "scroll" }, this.table),
                  this.all,
                ),
              ]),
        ),
        el(
          "div",
          { class: "middle" },
          el("div", {}, this.title, el("div", { class: "pair" }, this.large, this.close_up)),
          this.bound,
          this.count,
          el(
            "div",
            {},
            el("h4", {}, "Histogram over the prototypes; lines: class means"),
            this.bars,
          ),
          el("div", {}, el("h4", {}, "Choose an image"), this.kinds, this.sheet),
        ),
        this.side,
      ),
      this.live,
    );
  }

  panel() {
    const { view, data, hidden } = this,
      { limits } = data;
    const source = menu("source", data.sources, view.source, (chosen) => {
      Object.assign(view, { source: chosen, per_class: limits.per_class[1] });
      this.seen = null;
      this.message("Reading the images …");
      this.ask();
    });
    const slider = (schema: Slider & { title: string }, key: "prototypes" | "per_class" | "tau") =>
      hidden.has(schema.name) || hidden.has(key)
        ? []
        : [
            el("label", { class: "named" }, schema.title),
            control(schema, view[key], {
              onInput: (x: number) => {
                view[key] = Math.min(
                  Math.max(schema.step === 1 ? Math.round(x) : x, schema.low),
                  schema.high,
                );
                this.ask();
              },
              onRest: () => this.ask(),
            }),
          ];
    this.pooling = el(
      "div",
      { class: "pills", role: "group", "aria-label": "weights of the features" },
      ...(
        [
          ["uniform", "uniform (GAP)", "Each feature has weight 1/n"],
          ["pooling", "the run's pooling", "Weights of the pooling of the run"],
        ] as [View["weights"], string, string][]
      ).map(([k, t, h]) =>
        el(
          "button",
          {
            "data-weights": k,
            title: h,
            onclick: () => {
              view.weights = k;
              this.ask();
            },
          },
          t,
        ),
      ),
    );
    const shown = switches(this.shows, SHOWN, (key, on) => {
      this.shows[key] = on;
      this.draw();
    });
    this.most = this.reading?.most ?? 64;
    this.note = el("p", { class: "caption" });
    this.side.replaceChildren(
      ...this.section("source", "Local features of", source, this.note),
      el(
        "section",
        {},
        el("h4", {}, "Prototypes"),
        ...slider(
          {
            name: "prototypes",
            title: "number of prototypes",
            symbol: "m",
            help: "Chosen by greedy k-centre; more prototypes make smaller cells",
            low: limits.prototypes[0],
            high: limits.prototypes[1],
            step: 1,
          },
          "prototypes",
        ),
        ...slider(
          {
            name: "images per class",
            title: "images per class",
            symbol: "N",
            help: "Number of images per class whose local features are used",
            low: 1,
            high: this.most,
            step: 1,
          },
          "per_class",
        ),
        ...slider(
          {
            name: "tau",
            title: "active above τ / m",
            symbol: "τ",
            help: "A prototype is active for a class if its mean share exceeds τ/m; at 0, a single feature is enough",
            low: 0,
            high: limits.tau[1],
            step: 0.05,
          },
          "tau",
        ),
      ),
      ...this.section("weights", "Weights", this.pooling),
      ...this.section("classes", `Classes with a hull (at most ${limits.shown})`, this.shown),
      ...this.section("shown", "Shown", shown),
      ...this.section(
        "take",
        "Export",
        el(
          "div",
          { class: "pills" },
          el("button", { onclick: () => this.figure() }, "Figure, PNG"),
          ...exportLinks(data.base, "prototypes", () => this.query ?? "", { npz: "arrays (npz)" }),
        ),
      ),
    );
    this.fill();
  }

  // Fill in everything that depends on the answer but not on a slider being dragged.
  fill() {
    const plane = this.reading,
      { view } = this;
    if (!plane) return;
    const kept =
      plane.kept === null
        ? "The plane shows the features unchanged."
        : `The plane shows two of ${plane.dimension} principal components, with ${percent(plane.kept)} of the variance (PCA).`;
    this.note.textContent = `${plane.note} ${kept} ${plane.grid[0]} × ${plane.grid[1]} features per image.`;
    for (const button of this.pooling.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.weights === view.weights));
      button.disabled = button.dataset.weights === "pooling" && !plane.weighed;
      if (button.disabled) button.title = "Only for runs whose pooling weights local features";
    }
    const { activeElement } = this.root as ParentNode & Partial<ShadowRoot>,
      focused = activeElement instanceof HTMLElement ? activeElement.dataset.kind : undefined;
    const chips = (press: (c: number) => boolean, act: (c: number) => void, coloured: boolean) =>
      plane.classes.map((name, c) => {
        const slot = view.shown.indexOf(c);
        return el(
          "button",
          {
            "data-kind": `${coloured ? "hull" : "class"} ${c}`,
            "aria-pressed": String(press(c)),
            onclick: () => act(c),
          },
          ...(coloured && slot >= 0 ? [swatch(slot, this.theme)] : []),
          name,
        );
      });
    this.shown.replaceChildren(
      ...chips(
        (c) => view.shown.includes(c),
        (c) => this.toggle(c),
        true,
      ),
    );
    this.kinds.replaceChildren(
      ...chips(
        (c) => c === view.picture[0],
        (c) => this.choose(c, Math.min(view.picture[1], plane.counts[c] - 1)),
        false,
      ),
    );
    if (focused) {
      const before = this.whole.querySelector(`[data-kind="${focused}"]`);
      if (before instanceof HTMLElement) before.focus();
    }
    const cell = (x: number | null, k: string) =>
      el("td", { "data-measure": k }, x === null ? "–" : number(x));
    this.table.replaceChildren(
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "classes"),
          ...MEASURES.map(([, t, h]) => el("th", { scope: "col", title: h }, t)),
        ),
      ),
      el(
        "tbody",
        {},
        ...plane.pairs.map((p) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, `${plane.classes[p.a]} | ${plane.classes[p.b]}`),
            ...MEASURES.slice(0, 4).map(([k]) => cell(p[k], k)),
            el(
              "td",
              { "data-measure": "membership_rate" },
              `${percent(p.membership_rate)} | ${percent(p.back)}`,
            ),
          ),
        ),
        el(
          "tr",
          { class: "mean" },
          el("th", { scope: "row" }, "all pairs"),
          ...MEASURES.slice(0, 4).map(([k]) => cell(plane.overlaps[k], k)),
          el("td", {}, percent(plane.overlaps.membership_rate)),
        ),
      ),
    );
    this.all.textContent = `All pairs: mean over the ${(plane.classes.length * (plane.classes.length - 1)) / 2} pairs of ${plane.classes.length} classes. Active: share above τ/m = ${number(plane.tau)}.`;
    this.under.textContent = `${plane.total} images of ${plane.classes.length} classes. Squares: prototype patches. Lines lead from the image's features to their prototypes. Point at a cell or bar, or click an average.`;
    this.gallery();
  }

  gallery() {
    const plane = this.reading,
      { view } = this,
      [c, rank] = view.picture,
      n = plane.counts[c],
      columns = this.data.columns,
      rows = Math.ceil(plane.most / columns);
    const address = new URL(plane.sheet, new URL(this.data.base, location.href)).href;
    if (this.tiled !== `${address} ${c} ${n}`) {
      this.tiled = `${address} ${c} ${n}`;
      this.sheet.replaceChildren(
        ...Array.from({ length: n }, (_, i) => {
          const tile = el("div", {
            class: "tile",
            role: "option",
            id: `tile-${i}`,
            "aria-label": `image ${i + 1} of class ${plane.classes[c]}`,
            onclick: () => this.choose(c, i),
          });
          tile.style.backgroundImage = `url("${address}")`;
          tile.style.backgroundSize = `${100 * columns}% ${100 * rows * plane.classes.length}%`;
          tile.style.backgroundPosition = `${(100 * (i % columns)) / (columns - 1)}% ${(100 * (c * rows + Math.floor(i / columns))) / Math.max(1, rows * plane.classes.length - 1)}%`;
          return tile;
        }),
      );
    }
    [...this.sheet.children].forEach((tile, i) =>
      tile.setAttribute("aria-selected", String(i === rank)),
    );
    this.sheet.setAttribute("aria-activedescendant", `tile-${rank}`);
    const tile = this.sheet.children[rank] as HTMLElement | undefined;
    if (tile)
      this.sheet.scrollTop = Math.min(
        Math.max(
          this.sheet.scrollTop,
          tile.offsetTop + tile.offsetHeight - this.sheet.clientHeight,
        ),
        tile.offsetTop,
      );
  }

  // ---- messages from Streamlit
  onTheme() {
    this.fill();
    this.draw();
  }

  onLinkFollowed(data: PrototypesData) {
    this.view = structuredClone(data.view);
    this.panel();
    this.ask();
  }

  // ---- requests and answers
  ask() {
    this.link.send({ id: ++this.seq, view: this.view, have: this.seen });
  }

  onAnswer(answer: Plane) {
    this.message(answer.error ? `${answer.error}. Choose other local features in the panel.` : "");
    this.whole.classList.toggle("failed", Boolean(answer.error));
    if (answer.error) {
      this.seen = null;
      return;
    }
    const latest = answer.id === this.seq,
      whole = answer.cells !== undefined;
    if (whole) {
      const most = this.reading?.most;
      this.reading = { ...answer, shown: answer.view.shown };
      this.seen = answer.key;
      this.patches = patchesOf(answer);
      if (most !== answer.most) this.renew = true;
    }
    this.one = answer;
    this.pixels = bitmap(answer.pixels, answer.shapes.pixels[1], answer.shapes.pixels[0]);
    if (latest) {
      // the view as Python corrected it, within the range of the data
      const moved = (["per_class", "weights"] as const).some(
        (k) => this.view[k] !== answer.view[k],
      );
      Object.assign(this.view, answer.view); // controls hold a reference to this object
      if (this.renew || (moved && whole)) {
        this.renew = false;
        this.panel();
      } else this.fill();
      this.setLinkSoon(answer.query);
    }
    const { image, view } = answer,
      whose = `image ${view.picture[1] + 1} of class ${image.name}`;
    this.story.tell(
      answer.verdict,
      answer.next,
      `This is ${whose}: each pixel shows the patch that lies there. Green is what lies away from the prototype that tells its class most.`,
    );
    this.tell();
    this.draw(answer.id);
  }

  setLinkSoon(query: string) {
    this.query = query;
    this.queries.add(query);
    clearTimeout(this.writing);
    this.writing = setTimeout(() => writeAddress(query, this.data.kept), 150);
  }

  tell() {
    const plane = this.reading,
      { image, view } = this.one,
      rank = view.picture[1];
    this.title.textContent = `Image ${rank + 1} of class ${image.name}; close-up of its average`;
    const value = (key: "error" | "mean_distance" | "radius", text: string, title: string) =>
      el(
        "span",
        { title },
        el("small", {}, text),
        el("b", { "data-readout": key }, number(image[key])),
      );
    const sign = (ok: boolean) => el("span", { class: "sign" }, ok ? "≤" : ">");
    this.bound.replaceChildren(
      value("error", "error", "Distance between the average and the combination of prototypes"),
      sign(image.error <= image.mean_distance + 1e-12),
      value("mean_distance", "mean distance", "Mean distance from a feature to its prototype"),
      sign(image.mean_distance <= image.radius + 1e-12),
      value("radius", "δ, the largest", "Largest distance from a feature to its prototype"),
    );
    this.count.textContent = `The bound holds for ${plane.holds === plane.total ? "all" : `${plane.holds} of`} ${plane.total} images. On average: ${number(plane.mean.error)} ≤ ${number(plane.mean.mean_distance)} ≤ ${number(plane.mean.radius)}.`;
    const numbers = `error ${number(image.error)}, mean distance ${number(image.mean_distance)}, delta ${number(image.radius)}`;
    this.plane.setAttribute(
      "aria-label",
      `${plane.total} images, ${plane.cells.length} prototypes. Image ${rank + 1} of class ${image.name}: its average lies at ${image.pooled.map(number).join(", ")}, its ${image.used} prototypes combine to ${image.combination.map(number).join(", ")}; ${numbers}. Left and right arrow: another image; up and down: another class.`,
    );
    this.close_up.setAttribute("aria-label", `close-up about the average: ${numbers}`);
    this.large.setAttribute("aria-label", `image ${rank + 1} of class ${image.name}`);
    const order = [...this.one.histogram.keys()]
      .filter((i) => this.one.histogram[i] > 0)
      .sort((a, b) => this.one.histogram[b] - this.one.histogram[a])
      .slice(0, 5);
    this.bars.setAttribute(
      "aria-label",
      `histogram over ${plane.cells.length} prototypes; most in ${order.map((i) => `${i + 1}: ${percent(this.one.histogram[i])}`).join(", ")}`,
    );
    this.tellSoon(() => {
      this.live.textContent = `image ${rank + 1} of class ${image.name}: ${numbers}`;
    }, 400);
  }

  message(text: string) {
    this.notice.textContent = [text, this.slower].filter(Boolean).join(" ");
  }

  // ---- drawing
  resize() {
    fit(this.canvases);
    this.draw();
  }

  paint() {
    if (!this.reading) return;
    const { reading: plane, one: image, theme } = this,
      view = { shown: plane.shown, hover: this.hover, pointed: this.pointed, show: this.shows };
    const pen = (canvas: HTMLCanvasElement) => drawing(canvas);
    paintPlane(pen(this.plane), this.plane.clientWidth, plane, image, this.patches, view, theme);
    paintClose(pen(this.close_up), this.close_up.clientWidth, plane, image, view, theme);
    paintImage(
      pen(this.large),
      this.large.clientWidth,
      image,
      this.pixels,
      plane,
      this.hover,
      theme,
    );
    this.barAt = paintBars(
      pen(this.bars),
      this.bars.clientWidth,
      this.bars.clientHeight,
      plane,
      image,
      view,
      theme,
    );
    if (this.painting) this.whole.dataset.seq = String(this.painting);
  }

  // ---- gestures
  point(event: PointerEvent) {
    const plane = this.reading;
    if (!plane) return;
    const size = this.plane.clientWidth,
      { at, from } = scaleOf(plane.box, size),
      [x, y] = from(event.offsetX, event.offsetY);
    let cell = -1,
      least = Infinity,
      row = -1,
      reach = event.pointerType === "touch" ? 2 * REACH : REACH;
    for (let i = 0; i < plane.cells.length; i++) {
      const d = Math.hypot(plane.prototypes[2 * i] - x, plane.prototypes[2 * i + 1] - y);
      if (d < least) [cell, least] = [i, d];
    }
    if (this.shows.averages)
      for (let i = 0; i < plane.place.length; i++) {
        if (!plane.shown.includes(plane.place[i])) continue;
        const [px, py] = at(plane.pooled[2 * i], plane.pooled[2 * i + 1]),
          d = Math.hypot(px - event.offsetX, py - event.offsetY);
        if (d < reach) [row, reach] = [i, d];
      }
    this.look(cell, row, event);
  }

  look(cell: number, row: number, event?: PointerEvent) {
    const plane = this.reading;
    if (!plane || (cell === this.hover && row === this.pointed)) return;
    [this.hover, this.pointed] = [cell, row];
    this.plane.classList.toggle("near", row >= 0);
    this.tip.hidden = cell < 0 || !event;
    if (!this.tip.hidden) {
      const slots = plane.shown
        .map(
          (c, s) => `${plane.classes[c]}: ${percent(plane.share[s * plane.cells.length + cell])}`,
        )
        .join(", ");
      this.tip.textContent = `prototype ${cell + 1}: ${percent(this.one.histogram[cell])} of this image; classes ${slots}`;
    }
    this.draw();
  }

  take(row: number) {
    const c = this.reading.place[row];
    let rank = 0;
    for (let i = 0; i < row; i++) if (this.reading.place[i] === c) rank += 1;
    this.choose(c, rank);
  }

  choose(c: number, rank: number) {
    this.view.picture = [c, rank];
    this.ask();
  }

  toggle(c: number) {
    const { view } = this,
      { shown } = this.data.limits;
    if (view.shown.includes(c)) {
      if (view.shown.length > 1) view.shown = view.shown.filter((x) => x !== c);
    } else view.shown = [...view.shown.slice(view.shown.length >= shown ? 1 : 0), c];
    this.ask();
  }

  key(event: KeyboardEvent) {
    const plane = this.reading,
      move = (
        {
          ArrowLeft: [0, -1],
          ArrowRight: [0, 1],
          ArrowUp: [-1, 0],
          ArrowDown: [1, 0],
          Home: [0, -Infinity],
          End: [0, Infinity],
        } as Record<string, number[]>
      )[event.key];
    if (!move || !plane) return;
    event.preventDefault();
    const [from, rank] = this.view.picture;
    let [classes, by] = move;
    if (event.currentTarget === this.sheet && classes) {
      [classes, by] = [0, classes * this.data.columns];
    }
    const c = (from + classes + plane.classes.length) % plane.classes.length;
    this.choose(c, Math.min(Math.max(rank + by, 0), plane.counts[c] - 1));
  }

  figure() {
    const size = 900,
      k = 2,
      sheet = new OffscreenCanvas(k * size, k * size),
      ctx = drawing(sheet);
    ctx.scale(k, k);
    paintPlane(
      ctx,
      size,
      this.reading,
      this.one,
      this.patches,
      { shown: this.reading.shown, hover: -1, pointed: -1, show: this.shows },
      this.theme,
    );
    sheet
      .convertToBlob({ type: "image/png" })
      .then((blob) =>
        save(
          `prototypes-${this.view.source.replace(/\W/g, "-")}-${this.view.prototypes}.png`,
          blob,
        ),
      );
  }

  close() {
    clearTimeout(this.writing);
    super.close();
  }
}

export const { render, unmount } = defineComponent(Prototypes);
