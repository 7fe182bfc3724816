// Interactive counter-example: printed gradients next to the true ones. Python computes both; this
// module draws and sends requests.
import type { Gradient, Side, TruthAnswer, TruthData, TruthRequest, Scene } from "./types.ts";
import type { Place, Point, Theme } from "../../kit/types.ts";
import { Asking } from "../../kit/asking.ts";
import { defineComponent, paintScale } from "../../kit/component.ts";
import { div, drawing, el, onward, save, setText, tidy, writeAddress } from "../../kit/dom.ts";
import { INK, LETTER, POINTS, rampColour } from "../../kit/colours.ts";
import { control } from "../../kit/controls.ts";
import { pointHandles, pointRows } from "../../kit/points.ts";
import { carry, nudged, toPixels } from "../../kit/plane/view.ts";
import { colourOf, figure, raster, svg } from "./draw.ts";

const MOVING = 61,
  RESTING = 161; // nodes per side of the map during a gesture, and at rest
const number = (x: number | null) =>
  x === null ? "not finite" : Math.abs(x) >= 1e4 ? x.toExponential(2) : x.toFixed(4);
const vector = (g: Gradient) =>
  g.some((x) => x === null) ? "not finite" : `(${g.map((x) => tidy(x)).join(", ")})`;

class Errata extends Asking<TruthData, TruthRequest, TruthAnswer> {
  scene: Scene;
  plane = svg("svg", { role: "img" });
  handles = pointHandles();
  frame: HTMLDivElement;
  scaleBar = el("canvas", { width: 90, height: 1 });
  scaleText = el("span");
  keys = el("span", { class: "below" });
  caption = el("caption");
  cells = POINTS.map(() => [0, 1, 2].map(() => el("td")));
  lines: HTMLTableRowElement[];
  energies = el("p", { class: "caption" });
  live = el("div", { class: "hidden", "aria-live": "polite" });
  rows: {
    grid: HTMLDivElement;
    show: (scene: Record<Point, number[]> & { probe?: unknown }, theme: Theme) => void;
  };
  sliders = el("section");
  fields = el("a", { class: "button" }, "Open in Fields");

  linking = Infinity; // number of the request for the link
  answer: TruthAnswer | undefined;
  scale: number | null = null;
  background = ""; // map as a data URL
  size = 0;

  constructor(root: ParentNode, data: TruthData) {
    super(root, data, { api: "api/truth", styles: "library/errata/errata.css" });
    this.scene = structuredClone(data.scene);
  }

  onReady() {
    this.onTheme();
    this.observer.observe(this.frame);
    this.controls();
    this.ask(RESTING);
  }

  dom() {
    for (const name of POINTS) {
      const handle = this.handles[name];
      handle.addEventListener("pointerdown", (e) => this.drag(e, name));
      handle.addEventListener("keydown", (e) => this.nudge(e, name));
    }
    this.frame = div("frame", this.plane, ...Object.values(this.handles));
    this.lines = POINTS.map((name, i) =>
      el("tr", {}, el("th", { scope: "row" }, `${LETTER[name]} ${name}`), ...this.cells[i]),
    );
    this.rows = pointRows(INK, {
      onProbe: (name) => {
        this.scene.probe = name;
        this.scale = null;
        this.rest();
      },
      onMove: (name, axis, x) => {
        this.scene[name][axis] = x;
        this.rest();
      },
    });
    const [printed, truth] = this.data.sides;
    const headings = printed === "printed" ? ["as printed", "correct"] : [printed, truth];
    const table = el(
      "table",
      {},
      this.caption,
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "point"),
          ...[...headings, "difference"].map((t) => el("th", { scope: "col" }, t)),
        ),
      ),
      el("tbody", {}, ...this.lines),
    );
    return div(
      "lab",
      div(
        "stage",
        div(
          "left",
          this.frame,
          this.keys,
          div(
            "below",
            el(
              "span",
              {
                class: "bar",
                title:
                  "Norm of printed minus true gradient over all three points, at each position of the moved point",
              },
              "map: difference 0",
              this.scaleBar,
              this.scaleText,
            ),
          ),
        ),
        div(
          "panel",
          table,
          this.energies,
          this.sliders,
          el("section", {}, el("h4", {}, "Points"), this.rows.grid),
          div(
            "pills",
            el("button", { onclick: () => this.reset() }, "Reset"),
            this.fields,
            el("button", { onclick: () => this.png(), title: "Download the figure as PNG" }, "PNG"),
            el(
              "button",
              { onclick: () => this.vector(), title: "Download the figure as SVG" },
              "SVG",
            ),
            el(
              "button",
              {
                onclick: () => this.json(),
                title: "Download the triplet and both gradients as JSON",
              },
              "JSON",
            ),
          ),
        ),
      ),
      this.live,
    );
  }

  controls() {
    const known = this.schema.losses[this.data.loss].controls.filter((c) =>
      this.data.sliders.includes(c.name),
    );
    this.sliders.replaceChildren(
      ...(known.length ? [el("h4", {}, "Hyper-parameter")] : []),
      ...known.map((c) =>
        control(c, this.scene.hyper[c.name], {
          onInput: (x) => {
            this.scene.hyper[c.name] = x;
            this.move();
          },
          onRest: () => this.rest(),
        }),
      ),
    );
    this.sliders.hidden = !known.length;
  }

  // ---- messages from Streamlit and Python
  onTheme() {
    const { theme } = this;
    paintScale(this.scaleBar, (t) => rampColour(t, theme));
    const sample = (side: Side, width: number, dash = "") =>
      svg(
        "svg",
        { viewBox: "0 0 30 10", "aria-hidden": "true" },
        svg("line", {
          x1: 0,
          x2: 30,
          y1: 5,
          y2: 5,
          stroke: colourOf(side, theme),
          "stroke-width": width,
          ...(dash ? { "stroke-dasharray": dash } : {}),
        }),
      );
    const [printed, truth] = this.data.sides;
    this.keys.replaceChildren(
      el("span", { class: "key" }, sample("printed", 3, "7 5"), `${printed}: gradient`),
      el("span", { class: "key" }, sample("true", 6), `${truth}: gradient by autograd`),
      el("span", { class: "key" }, "forces point the other way"),
    );
    if (this.answer) this.background = raster(this.answer, theme);
    this.draw();
  }

  onAnswer(answer: TruthAnswer) {
    this.answer = answer;
    this.scale = answer.scale;
    this.background = raster(answer, this.theme);
    this.numbers(answer);
    this.fields.href = onward(`${this.data.base}fields`, answer.fields);
    if (answer.id >= this.linking) {
      // the link is updated at rest; an older answer may still be pending
      this.linking = Infinity;
      writeAddress(answer.query, ["socket", "source"]);
      this.live.textContent = this.summary(answer);
    }
    this.draw();
  }

  ask(n: number) {
    this.link.send({
      id: ++this.seq,
      scene: this.scene,
      n,
      ...(this.scale && n === MOVING ? { scale: this.scale } : {}),
    });
  }

  numbers(answer: TruthAnswer) {
    const { printed, true: truth, apart, difference, scale, printed_energy, true_energy } = answer;
    this.caption.textContent =
      difference === null
        ? "Gradients; the printed one is not finite here"
        : `Gradients; difference ${number(difference)}`;
    POINTS.forEach((_, i) => {
      this.lines[i].className = (apart[i] ?? 1) > 1e-9 ? "differs" : "";
      [vector(printed[i]), vector(truth[i]), number(apart[i])].forEach((text, k) =>
        setText(this.cells[i][k], text),
      );
    });
    this.plane.setAttribute("aria-label", this.summary(answer));
    this.energies.textContent = `${answer.energy}: ${printed_energy === null ? "" : `printed ${number(printed_energy)}, `}true ${number(true_energy)}`;
    this.scaleText.textContent = `≥ ${Number(scale.toPrecision(3))}`;
  }

  summary({ printed, true: truth }: TruthAnswer) {
    const [left, right] = this.data.sides;
    return POINTS.map(
      (name, i) =>
        `gradient on the ${name}: ${left} ${vector(printed[i])}, ${right} ${vector(truth[i])}`,
    ).join("; ");
  }

  // ---- drawing
  paint() {
    const size = this.frame.clientWidth;
    if (!size) return;
    this.size = size;
    this.plane.setAttribute("viewBox", `0 0 ${size} ${size}`);
    this.plane.replaceChildren(
      ...figure(this.scene, this.answer, this.background, size, this.theme),
    );
    const at = toPixels(this.scene.view, size);
    for (const name of POINTS) {
      const [x, y] = at(this.scene[name]),
        handle = this.handles[name];
      handle.style.left = `${x}px`;
      handle.style.top = `${y}px`;
      handle.setAttribute("aria-label", `${name} at ${this.scene[name].map(tidy).join(", ")}`);
    }
    this.rows.show(this.scene, this.theme);
    if (this.answer) this.plane.dataset.seq = String(this.answered);
  }

  // ---- gestures
  move() {
    this.draw();
    this.ask(MOVING);
  }

  rest() {
    this.draw();
    this.ask(RESTING);
    this.linking = this.seq;
  }

  drag(event: PointerEvent, name: Point) {
    const { scene, size } = this,
      now = { view: scene.view, size, place: scene[name] };
    const set = (place: Place) => {
      this.scene[name] = place;
      this.move();
    };
    carry(event, this.plane, now, set, (moved) => {
      if (moved) this.rest();
    });
  }

  nudge(event: KeyboardEvent, name: Point) {
    const place = nudged(event, this.scene[name]);
    if (!place) return;
    this.scene[name] = place;
    this.move();
    this.restSoon();
  }

  reset() {
    this.scene = structuredClone(this.data.default);
    this.scale = null;
    this.controls();
    this.rest();
  }

  // ---- export
  svgText() {
    const copy = this.plane.cloneNode(true) as SVGElement;
    for (const [key, value] of [
      ["xmlns", "http://www.w3.org/2000/svg"],
      ["width", this.size],
      ["height", this.size],
    ] as const)
      copy.setAttribute(key, String(value));
    return new XMLSerializer().serializeToString(copy);
  }

  vector() {
    save(`${this.data.title}.svg`, new Blob([this.svgText()], { type: "image/svg+xml" }));
  }

  async png() {
    const image = new Image(),
      canvas = document.createElement("canvas");
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(this.svgText())}`;
    await image.decode();
    canvas.width = canvas.height = 2 * this.size;
    drawing(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(`${this.data.title}.png`, blob));
  }

  json() {
    if (!this.answer) return;
    const { printed, true: truth, difference, printed_energy, true_energy } = this.answer;
    save(
      `${this.data.title}.json`,
      new Blob(
        [
          JSON.stringify(
            { ...this.scene, printed, true: truth, difference, printed_energy, true_energy },
            null,
            2,
          ),
        ],
        { type: "application/json" },
      ),
    );
  }
}

export const { render, unmount } = defineComponent(Errata);
