// Pair weights page: two maps of pair weights over similarities, and the triplet under the cursor.
// Python computes everything and writes the link; this module holds the view during gestures.
import type {
  PairWeightsAnswer,
  PairWeightsData,
  PairWeightsRequest,
  Pair,
  View,
} from "./types.ts";
import type { Place } from "../../../kit/types.ts";
import { Asking } from "../../../kit/asking.ts";
import { defineComponent, paintScale } from "../../../kit/component.ts";
import { div, drawing, el, save, show, tidy } from "../../../kit/dom.ts";
import { formula } from "../../../kit/formula/formula.ts";
import { INK, rampColour, signedColour } from "../../../kit/colours.ts";
import { Presets, control, keyMark, lossPanel, menu } from "../../../kit/controls.ts";
import { exportLinks } from "../../../kit/export.ts";
import { arrow, follow } from "../../../kit/hand.ts";
import { fit } from "../../../kit/screen.ts";
import { frameOf, paintMap, paintSphere, rasterise } from "./paint.ts";

const EXPLAINED = "Each button compares two losses. Then move a slider or point at a map.";
const MOVING = 61,
  RESTING = 161; // nodes per side during a gesture, and at rest
const EDGES: Pair[] = ["ap", "an", "pn"];
const READ = ["state", "loss", "w_ap", "w_an", "w_pn"];
const signedText = (x: number) => `${x < 0 ? "−" : x > 0 ? "+" : ""}${show(Math.abs(x))}`;

class PairWeights extends Asking<PairWeightsData, PairWeightsRequest, PairWeightsAnswer> {
  view: View;
  menus: Record<string, Record<string, string>>;
  slides: Presets<{ title: string; caption: string; state: View }>;
  cards = [0, 1].map(() => this.card());
  options = div("options");
  bar = el("canvas", { width: 160, height: 1 });
  barText = el("span", { class: "bar" });
  sphere = el("canvas", { class: "sphere", role: "img" });
  edgeValues = EDGES.flatMap((pair) =>
    (["S", "d"] as const).map(
      (letter) => [letter, pair, el("b", { "data-edge": `${letter}_${pair}` })] as const,
    ),
  );
  edges: HTMLDivElement;
  notice = div("notice");
  live = el("div", { class: "hidden", "aria-live": "polite" });

  top: number | undefined; // top of the scale
  numbersAt: PairWeightsAnswer | undefined; // last numbers
  maps: PairWeightsAnswer | undefined; // last maps
  rasters: OffscreenCanvas[] = [];
  hover: Place | null = null;

  constructor(root: ParentNode, data: PairWeightsData) {
    super(root, data, {
      api: "api/microscope",
      styles: "losses/fields/pair_weights/pair_weights.css",
    });
    this.view = structuredClone(data.view);
    this.menus = data.menus;
    this.slides = new Presets(data.slides, (i) => this.take(i), EXPLAINED);
  }

  onReady() {
    this.slides.find(this.view);
    this.fill();
    for (const { canvas } of this.cards) this.observer.observe(canvas);
    this.resize();
    this.ask(RESTING);
  }

  // ---- elements
  dom() {
    this.edges = div(
      "readout",
      ...this.edgeValues.map(([letter, pair, value]) =>
        el("div", {}, el("span", {}, letter, el("sub", {}, pair)), value),
      ),
    );
    return div(
      "lab",
      ...(this.hidden.has("presets")
        ? []
        : [div("slides", div("pills", ...this.slides.buttons), this.slides.text)]),
      div(
        "stage",
        div(
          "main",
          div(
            "below",
            this.barText,
            keyMark("", "loss = 0"),
            keyMark("dashed", "upper clamp"),
            keyMark("hatched", "no such triplet"),
            keyMark("dotted", "equally similar"),
          ),
          div("cards losses", ...this.cards.map((c) => c.box)),
          this.notice,
        ),
        div(
          "side panel",
          this.options,
          el(
            "section",
            {},
            el("h4", {}, "The triplet as seen from its anchor"),
            this.sphere,
            this.edges,
            el("p", { class: "caption" }, "Distance from the centre is the angle to A."),
          ),
          ...(this.hidden.has("export")
            ? []
            : [
                el(
                  "section",
                  {},
                  el("h4", {}, "Export"),
                  div(
                    "pills",
                    el("button", { onclick: () => this.figure() }, "figure (PNG)"),
                    ...exportLinks(
                      this.data.base,
                      "pair_weights",
                      () => `${this.query}${this.theme === "dark" ? "&dark=1" : ""}`,
                    ),
                  ),
                ),
              ]),
        ),
      ),
      this.live,
    );
  }

  card() {
    const canvas = el("canvas", { class: "weights", role: "application", tabindex: 0 });
    const values = READ.map((name) => el("b", { "data-readout": name }));
    const labels = ["pair", "loss", ...EDGES.map((pair) => weightName("S", pair))];
    const names = labels.map((label) => el("span", {}, ...[label].flat()));
    const card = {
      canvas,
      values,
      names,
      numbers: div("readout", ...values.map((v, i) => el("div", {}, names[i], v))),
      box: el("div", { class: "card", role: "group" }),
    };
    names[0].textContent = "triplet";
    canvas.addEventListener("pointermove", (e) => {
      if (e.buttons || e.pointerType === "touch") return;
      this.look(this.place(e, canvas));
    });
    canvas.addEventListener("pointerleave", () => this.look(null));
    canvas.addEventListener("pointerdown", (e) => this.pin(e, canvas));
    canvas.addEventListener("keydown", (e) => this.nudge(e));
    return card;
  }

  fill() {
    const { losses } = this.schema;
    this.cards.forEach((card, k) => {
      const panel = this.view.panels[k];
      const [choice, sliders] = lossPanel(this.schema, panel, {
        hidden: this.hidden,
        label: `loss ${k + 1}`,
        onInput: () => {
          this.slides.press();
          this.move();
        },
        onRest: () => this.rest(),
        onLoss: () => {
          this.slides.press();
          this.top = undefined;
          this.fill();
          this.rest();
        },
      });
      card.box.setAttribute("aria-label", `loss ${k + 1}: ${losses[panel.loss].title}`);
      card.box.replaceChildren(
        choice,
        formula(losses[panel.loss].latex),
        card.canvas,
        card.numbers,
        sliders,
      );
    });
    this.choose();
  }

  choose() {
    const { view } = this;
    const chosen = (key: "weight" | "by" | "scale" | "rival", name: string) => {
      const box = menu(name, this.menus[key], view[key], (value) => {
        Object.assign(view, { [key]: value });
        this.slides.press();
        this.top = undefined;
        this.choose();
        this.rest();
      });
      return this.hidden.has(key) ? [] : [el("label", {}, el("span", {}, name), box)];
    };
    const schema = {
      name: "S_pn",
      symbol: "S_pn",
      help: "similarity of negative and positive",
      low: -0.99,
      high: 0.99,
      step: 0.01,
      default: 0,
    };
    this.options.replaceChildren(
      el("h4", {}, "Shown"),
      ...chosen("weight", "weight of"),
      ...chosen("by", "as"),
      ...chosen("scale", "colour"),
      ...chosen("rival", "N lies"),
      ...(view.rival === "fixed" && !this.hidden.has("pn")
        ? [
            control(schema, view.pn, {
              onInput: (x: number) => {
                view.pn = Math.min(Math.max(x, -0.995), 0.995);
                this.slides.press();
                this.move();
              },
              onRest: () => this.rest(),
            }),
          ]
        : []),
    );
  }

  take(index: number) {
    this.view = structuredClone(this.slides.offers[index].state);
    this.slides.press(index);
    this.top = undefined;
    this.fill();
    this.rest();
  }

  // ---- messages from Streamlit
  onLinkFollowed(data: PairWeightsData) {
    this.view = structuredClone(data.view);
    this.slides.press();
    this.slides.find(this.view);
    this.top = undefined;
    this.fill();
    this.rest();
  }

  onTheme() {
    if (this.maps) this.prepareMaps(this.maps);
    this.draw();
  }

  // ---- requests and answers
  ask(n: number) {
    this.link.send({
      id: ++this.seq,
      view: this.view,
      n,
      top: this.top,
      settle: n === RESTING,
      ...(this.hover ? { at: this.hover } : {}),
    });
  }

  // Request the numbers under the pointer, unless a map is waiting to be sent.
  look(place: Place | null) {
    this.hover = place;
    this.draw();
    if (this.link.waiting) {
      if (place) this.link.waiting.at = place;
      else delete this.link.waiting.at;
    } else
      this.link.send({
        id: ++this.seq,
        view: this.view,
        maps: false,
        ...(place ? { at: place } : {}),
      });
  }

  onAnswer(answer: PairWeightsAnswer) {
    this.numbersAt = answer;
    this.tell(answer);
    if (answer.n) {
      this.maps = answer;
      this.top = answer.top;
      this.prepareMaps(answer);
      if (answer.query !== undefined) this.setLink(answer.query, this.data.kept);
    }
    this.draw(answer.id);
  }

  prepareMaps(maps: PairWeightsAnswer) {
    this.rasters = [0, 1].map((k) => rasterise(maps, maps[`weight${k}`], this.theme));
    const { signed, top } = maps;
    paintScale(this.bar, (t) =>
      signed ? signedColour(2 * t - 1, this.theme) : rampColour(t, this.theme),
    );
    const most = String(Number(top.toPrecision(3))),
      attracts = this.view.by === "S" ? "attracts" : "repels",
      repels = this.view.by === "S" ? "repels" : "attracts";
    this.barText.replaceChildren(
      el("span", {}, ...weightName(this.view.by, this.view.weight)),
      signed ? `${attracts} ≤ −${most}` : "0",
      this.bar,
      `≥ ${signed ? `+${most} ${repels}` : most}`,
    );
  }

  tell({ triplet, at }: PairWeightsAnswer) {
    const { by, weight } = this.view;
    this.cards.forEach((card, k) => {
      const found = triplet?.losses[k];
      const texts = found
        ? [
            found.active ? "active" : "no weight",
            show(found.loss),
            ...EDGES.map((pair) => signedText(found.weights[pair])),
          ]
        : ["none", "", "", "", ""];
      texts.forEach((text, i) => {
        card.values[i].textContent = text;
      });
      EDGES.forEach((pair, i) => card.names[i + 2].replaceChildren(...weightName(by, pair)));
      const title = this.schema.losses[this.view.panels[k].loss].title;
      card.canvas.setAttribute(
        "aria-label",
        `${title}: weight of the pair ${this.menus.weight[weight]}, over similarities of the pair and its rival. At ${at.map(tidy).join(" and ")}: ${found ? `${texts[0]}, loss ${texts[1]}, weights a-p ${texts[2]}, a-n ${texts[3]}, p-n ${texts[4]}` : "no such triplet"}. Arrow keys move the marker.`,
      );
    });
    for (const [letter, pair, value] of this.edgeValues)
      value.textContent = triplet ? show(triplet[letter][pair]) : "–";
    this.sphere.setAttribute(
      "aria-label",
      triplet
        ? `triplet on the unit sphere, similarities a-p ${show(triplet.S.ap)}, a-n ${show(triplet.S.an)}, p-n ${show(triplet.S.pn)}`
        : "no three unit vectors have these similarities",
    );
    this.notice.textContent = this.slower;
  }

  // ---- drawing
  resize() {
    fit([...this.cards.map((c) => c.canvas), this.sphere]);
    this.draw();
  }

  paint() {
    this.cards.forEach(({ canvas }, k) => this.paintCard(canvas, k));
    paintSphere(drawing(this.sphere), this.sphere.clientWidth, this.numbersAt?.triplet, this.theme);
    if (this.painting) this.whole.dataset.seq = String(this.painting);
  }

  paintCard(canvas: HTMLCanvasElement, k: number) {
    const lines = this.maps?.panels[k];
    paintMap(
      drawing(canvas),
      canvas.clientWidth,
      {
        raster: this.rasters?.[k],
        lines,
        corners: this.maps?.[`corners${k}`],
        at: this.view.at,
        hover: this.hover,
      },
      this.theme,
    );
  }

  // ---- gestures
  place(event: PointerEvent, canvas: HTMLCanvasElement) {
    const box = canvas.getBoundingClientRect();
    return frameOf(canvas.clientWidth)
      .from([event.clientX - box.left, event.clientY - box.top])
      .map((v) => Number(Math.min(Math.max(v, -0.995), 0.995).toFixed(3)));
  }

  pin(event: PointerEvent, canvas: HTMLCanvasElement) {
    this.hover = null;
    const move = (e: PointerEvent) => {
      this.view.at = this.place(e, canvas);
      this.slides.press();
      this.draw();
      this.look(null);
    };
    move(event);
    follow(event, canvas, move, () => this.rest());
  }

  nudge(event: KeyboardEvent) {
    const step = arrow(event);
    if (!step) return;
    this.view.at = this.view.at.map((v, i) =>
      Number(Math.min(Math.max(v + 0.01 * step[i], -0.995), 0.995).toFixed(4)),
    );
    this.look(null);
    this.restSoon();
  }

  move() {
    this.ask(MOVING);
  }

  rest() {
    this.ask(RESTING);
    this.tellSoon(() => {
      if (this.numbersAt?.triplet)
        this.live.textContent = this.cards
          .map((c, k) => `loss ${k + 1}: ${c.values.map((v) => v.textContent).join(", ")}`)
          .join(". ");
    }, 500);
  }

  // Return a figure of both maps with titles and scale.
  figure() {
    const { maps } = this;
    if (!maps) return;
    const ink = INK[this.theme],
      k = 2,
      side = 480,
      sheet = new OffscreenCanvas(k * (2 * side + 60), k * (side + 110)),
      ctx = drawing(sheet);
    const sub = (pair: string) => `d(loss)/d${this.view.by}(${pair[0]},${pair[1]})`,
      { signed, top } = maps;
    ctx.scale(k, k);
    ctx.fillStyle = ink.page;
    ctx.fillRect(0, 0, sheet.width, sheet.height);
    this.view.panels.forEach((panel, i) => {
      const left = 20 + i * (side + 20),
        values = Object.entries(panel.hyper)
          .map(([name, v]) => `${name} = ${v === null ? "∞" : typeof v === "number" ? tidy(v) : v}`)
          .join(", ");
      ctx.fillStyle = ink.text;
      ctx.textAlign = "left";
      ctx.textBaseline = "alphabetic";
      ctx.font = "600 15px system-ui, sans-serif";
      ctx.fillText(this.schema.losses[panel.loss].title, left, 26, side);
      ctx.font = "12px system-ui, sans-serif";
      ctx.fillText(values, left, 45, side);
      const one = new OffscreenCanvas(k * side, k * side),
        pen = drawing(one);
      pen.scale(k, k);
      paintMap(
        pen,
        side,
        {
          raster: this.rasters[i],
          lines: maps.panels[i],
          corners: maps[`corners${i}`],
          at: this.view.at,
        },
        this.theme,
      );
      ctx.drawImage(one, left, 56, side, side);
    });
    ctx.fillStyle = ink.text;
    ctx.font = "12px system-ui, sans-serif";
    const low = signed ? `−${Number(top.toPrecision(3))}` : "0",
      text = `${sub(this.view.weight)}   ${low}`,
      width = ctx.measureText(text).width;
    ctx.fillText(text, 20, side + 88);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.bar, 28 + width, side + 77, 160, 12);
    ctx.fillText(
      `${Number(top.toPrecision(3))}   (N ${this.menus.rival[this.view.rival]}${this.view.rival === "fixed" ? `: ${tidy(this.view.pn)}` : ""})`,
      196 + width,
      side + 88,
    );
    sheet
      .convertToBlob({ type: "image/png" })
      .then((blob) =>
        save(`pair-weights-${this.view.panels.map((p) => p.loss).join("-")}.png`, blob),
      );
  }
}

function weightName(by: string, pair: string) {
  return [el("i", {}, `dL/d${by}`), el("sub", {}, pair)];
}

export const { render, unmount } = defineComponent(PairWeights);
