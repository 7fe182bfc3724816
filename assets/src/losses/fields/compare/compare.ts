// Compare page: two to four losses over linked points, their difference, and the verdict whether
// they are the same loss. Python computes, judges and writes the link; this module holds the
// comparison during gestures.
import type {
  CompareAnswer,
  CompareData,
  CompareRequest,
  Held,
  Panel,
  Comparison,
  Preset,
} from "./types.ts";
import type { Painted, Scene } from "../../../kit/plane/types.ts";
import type { Child, Place } from "../../../kit/types.ts";
import { Asking } from "../../../kit/asking.ts";
import { defineComponent } from "../../../kit/component.ts";
import { div, el, show, still } from "../../../kit/dom.ts";
import { formula } from "../../../kit/formula/formula.ts";
import { INK, LETTER, POINTS } from "../../../kit/colours.ts";
import { Presets, lossPanel } from "../../../kit/controls.ts";
import { LandscapeSlot } from "../../../kit/landscape_slot.ts";
import { pointRows } from "../../../kit/points.ts";
import { Hand } from "./pointer.ts";
import { options, pairMenu, presetRows } from "./choices.ts";
import { Judgement, number } from "./judgement.ts";
import { Plane } from "./plane.ts";
import { Scales } from "./scales.ts";
import { exportSection } from "./export.ts";

const MOVING = 60,
  // nodes per side during a gesture and at rest; 20 arrows divide both
  RESTING = 140;
const MOST = 4,
  FEWEST = 2;
const EXPLAINED = "Each button compares two losses. Then move a slider to see where they differ.";
const READ = [
  "loss",
  "before the clamp",
  "state",
  ...POINTS.map((name) => `force on ${LETTER[name]}`),
];

export class Compare extends Asking<CompareData, CompareRequest, CompareAnswer> {
  state: Comparison;
  presets: Presets<Preset>;
  hand: Hand;
  landscape: LandscapeSlot;
  cardsBox = div("cards losses");
  map: Plane;
  judgement: Judgement;
  pairBox = div("top");
  live = el("div", { class: "hidden", "aria-live": "polite" });
  notice = div("notice");
  rows = pointRows(INK, {
    onProbe: (name) => {
      this.hand.touch();
      this.state.probe = name;
      this.rescale();
    },
    onMove: (name, axis, x) => {
      this.hand.touch();
      this.state[name][axis] = x;
      this.rest();
    },
  });
  scaleBars: Scales;
  add = el(
    "button",
    {
      onclick: () => this.insert(this.state.panels.length - 1),
      title: "Add a plane with a copy of the last loss",
    },
    "Add a loss",
  );
  options = div("shown");

  cards: ReturnType<Compare["card"]>[] = [];
  scales: Held = {};
  locked = false;
  place: Place | null = null; // place under the pointer
  answer: CompareAnswer | undefined;
  onSettled: (() => void) | undefined;
  snippet = "";

  constructor(root: ParentNode, data: CompareData) {
    super(root, data, { api: "api/compare", styles: "losses/fields/compare/compare.css" });
    this.state = structuredClone(data.comparison);
    this.presets = new Presets(data.presets, (i) => this.take(i), EXPLAINED);
    this.hand = new Hand(this);
    this.landscape = new LandscapeSlot(this, {
      page: "compare",
      pair: true,
      put: (box) => box && this.cardsBox.before(box),
    });
  }

  onReady(data: CompareData) {
    this.panels();
    this.onTheme();
    this.ask(RESTING);
    this.landscape.follow(true);
    if (data.idle && !still()) this.hand.orbit();
  }

  // ---- elements
  dom() {
    const { hidden } = this;
    this.map = new Plane("difference of the two losses", this.hand);
    this.judgement = new Judgement(this);
    this.scaleBars = new Scales(this);
    return div(
      "lab",
      ...(hidden.has("presets") ? [] : [div("preset-rows", ...presetRows(this))]),
      ...(hidden.has("verdict") ? [] : [this.judgement.box]),
      div(
        "stage",
        div(
          "main",
          this.cardsBox,
          div("bars foot", ...(hidden.has("panels") ? [] : [this.add]), this.scaleBars.box),
          this.notice,
        ),
        div(
          "side panel",
          div("map", this.pairBox, this.scaleBars.legend, this.map.frame, this.scaleBars.map),
          ...this.section("options", "Shown", this.options),
          ...this.section("points", "Points (equal in all planes)", this.rows.grid),
          ...this.section("export", "Export", exportSection(this)),
        ),
      ),
      this.live,
    );
  }

  panels() {
    this.observer.disconnect();
    this.cards = this.state.panels.map((panel, k) => this.card(panel, k));
    this.cardsBox.replaceChildren(...this.cards.map((c) => c.box));
    for (const plane of this.planes()) this.observer.observe(plane.frame);
    this.add.disabled = this.state.panels.length >= MOST;
    this.options.replaceChildren(...options(this));
    this.judgement.fill();
    this.updatePairMenu();
    this.resize();
  }

  planes() {
    return [...this.cards.map((c) => c.plane), this.map];
  }

  card(panel: Panel, k: number) {
    const plane = new Plane(`loss ${k + 1}`, this.hand, { first: k === 0 });
    const values = READ.map((name) => el("b", { "data-readout": name }));
    const numbers = div(
      "readout",
      ...READ.map((name, i) => el("div", {}, el("span", {}, name), values[i])),
    );
    const box = el("div", { class: "card", role: "group" });
    const { panels } = this.state,
      count = panels.length;
    const button = (text: Child, name: string, act: () => void, disabled = false) =>
      el(
        "button",
        {
          "aria-label": `${name} loss ${k + 1}`,
          title: `${name} this loss`,
          disabled,
          onclick: act,
        },
        text,
      );
    const buttons = [
      button("⇄", "exchange", () => this.exchange(k, (k + 1) % count)),
      button(el("i", { class: "copies" }), "duplicate", () => this.insert(k), count >= MOST),
      button("×", "remove", () => this.remove(k), count <= FEWEST),
    ];
    if (k === 0)
      plane.frame.append(
        div(
          "zoom",
          ...(
            [
              ["+", 1 / 1.25, "zoom in"],
              ["−", 1.25, "zoom out"],
            ] as const
          ).map(([text, factor, name]) =>
            el(
              "button",
              { "aria-label": name, title: name, onclick: () => this.hand.zoom(factor) },
              text,
            ),
          ),
        ),
      );
    const fill = () => {
      const { losses } = this.schema;
      const [choice, sliders] = lossPanel(this.schema, panel, {
        hidden: this.hidden,
        label: `loss ${k + 1}`,
        onInput: () => {
          this.hand.touch();
          this.presets.press();
          this.move();
        },
        onRest: () => this.rest(),
        onLoss: () => {
          this.hand.touch();
          fill();
          this.rescale();
        },
      });
      box.setAttribute("aria-label", `loss ${k + 1}: ${losses[panel.loss].title}`);
      box.replaceChildren(
        div(
          "top",
          el("span", { class: "badge", "aria-hidden": "true" }, String(k + 1)),
          choice,
          ...(this.hidden.has("panels") ? [] : buttons),
        ),
        formula(losses[panel.loss].latex),
        plane.frame,
        numbers,
        sliders,
      );
    };
    fill();
    return { plane, values, box };
  }

  insert(k: number) {
    this.state.panels.splice(k + 1, 0, structuredClone(this.state.panels[k]));
    this.setPair([k, k + 1]);
  }

  remove(k: number) {
    this.state.panels.splice(k, 1);
    const left = this.state.pair.filter((i) => i !== k).map((i) => (i > k ? i - 1 : i));
    this.setPair(left.length === 2 ? left : [0, 1]);
  }

  exchange(i: number, j: number) {
    const { panels } = this.state;
    [panels[i], panels[j]] = [panels[j], panels[i]];
    this.setPair(this.state.pair);
  }

  setPair(pair: number[]) {
    this.hand.touch();
    this.state.pair = pair;
    this.panels();
    this.rescale();
  }

  updatePairMenu() {
    this.pairBox.replaceChildren(...pairMenu(this));
  }

  take(index: number) {
    this.hand.touch();
    this.state = structuredClone(this.presets.offers[index].comparison);
    this.presets.press(index);
    this.panels();
    this.rescale();
  }

  // ---- messages from Streamlit
  get busy() {
    return Boolean(this.hand.held);
  }

  onLinkFollowed(data: CompareData) {
    this.state = structuredClone(data.comparison);
    this.presets.press();
    this.panels();
    this.rescale();
  }

  onTheme() {
    if (this.answer) {
      this.spread();
      this.tell();
    }
    this.sync();
    if (this.landscape.shown) this.landscape.follow(true);
  }

  // ---- landscapes of the pair
  landscapeState() {
    return this.state;
  }
  landscapeOf() {
    return { comparison: this.state };
  }
  // The marbles were placed: move the scanning point there.
  letGo(place: Place) {
    this.hand.touch();
    this.state[this.state.probe] = place;
    this.rest();
  }
  weigh(mass: number) {
    this.state.mass = mass;
    this.rest();
  }

  // ---- requests and answers
  ask(n: number, settle = n === RESTING) {
    const request: CompareRequest = {
      id: ++this.seq,
      comparison: this.state,
      n,
      settle,
      lock: this.locked,
      ...this.scales,
    };
    if (this.place) request.at = this.place;
    this.link.send(request);
  }

  // Request the numbers under the pointer, unless a figure is waiting to be sent.
  look(place: Place | null) {
    this.place = place;
    if (!place) {
      for (const plane of this.planes()) plane.look(null, this.state.view, "");
      return;
    }
    if (this.link.waiting) this.link.waiting.at = place;
    else this.link.send({ id: ++this.seq, comparison: this.state, at: place, fields: false });
  }

  onAnswer(answer: CompareAnswer) {
    if (answer.there && this.place && answer.there.length === this.cards.length)
      this.report(answer);
    if (!answer.panels || answer.panels.length !== this.cards.length) return;
    this.answer = answer;
    this.scales = { scale: answer.scale, reference: answer.reference, span: answer.span };
    this.spread();
    this.tell();
    if (answer.query !== undefined) this.onRestAnswer(answer);
  }

  // Split an answer into one field per plane, including the difference.
  spread() {
    const { theme } = this,
      answer = this.answer as CompareAnswer,
      common = { id: answer.id, n: answer.n, view: answer.view, scale: answer.scale, radius: null };
    this.cards.forEach(({ plane }, k) =>
      plane.receive(
        {
          ...common,
          ...answer.panels[k],
          signed: answer.signed,
          shade: answer[`shade${k}`],
          active: answer[`active${k}`],
          arrows: this.state.arrows ? answer[`arrows${k}`] : null,
          corners: answer[`corners${k}`],
        } as unknown as Painted,
        theme,
      ),
    );
    const none = [
      [0, 0],
      [0, 0],
      [0, 0],
    ];
    this.map.receive(
      {
        ...common,
        ...answer.panels[0],
        forces: none,
        outer: [],
        inner: [],
        corners: new Uint16Array(0),
        signed: true,
        shade: answer.difference,
        active: new Uint8Array(answer.active0.length).fill(255),
        arrows: this.state.arrows ? answer.apart : null,
      } as unknown as Painted,
      theme,
    );
    this.draw(answer.id);
  }

  report({ at, there, left }: CompareAnswer) {
    if (!at || !there || !left) return;
    this.cards.forEach(({ plane }, k) =>
      plane.look(
        at,
        this.state.view,
        `loss ${show(there[k].energy)} · force ${number(Math.hypot(...there[k].force))}`,
      ),
    );
    this.map.look(
      at,
      this.state.view,
      left.energy === null ? "∞" : `loss ${number(left.energy)} · force ${number(left.force)}`,
    );
  }

  tell() {
    const answer = this.answer as CompareAnswer;
    this.cards.forEach((card, k) => {
      const f = answer.panels[k],
        forces = f.forces.map(([x, y]) => Math.hypot(x, y));
      const texts = [
        show(f.energy),
        f.raw === null ? "∞" : show(f.raw),
        f.hit ? "active" : "no force",
        ...forces.map((x) => x.toFixed(3)),
      ];
      texts.forEach((text, i) => {
        if (card.values[i].textContent !== text) card.values[i].textContent = text;
      });
      if (answer.query !== undefined)
        card.plane.canvas.setAttribute(
          "aria-label",
          `${this.schema.losses[this.state.panels[k].loss].title}: loss ${texts[0]}, ${texts[2]}, forces on anchor ${texts[3]}, positive ${texts[4]}, negative ${texts[5]}`,
        );
    });
    this.judgement.tell(answer.same);
    this.scaleBars.tell(answer);
    this.map.canvas.setAttribute(
      "aria-label",
      `loss ${this.state.pair[0] + 1} minus loss ${this.state.pair[1] + 1}: largest difference in view ${number(answer.largest)}`,
    );
    this.notice.textContent = this.slower;
  }

  onRestAnswer(answer: CompareAnswer) {
    this.query = answer.query ?? "";
    this.snippet = answer.snippet ?? "";
    this.onSettled?.();
    if (this.hand.orbiting) this.queries.add(this.query);
    else this.setLink(this.query, ["hide", "socket"]);
  }

  // Fit the colour scale again, unless it is locked and `insist` is false.
  rescale(insist = false) {
    if (insist || !this.locked) this.scales = {};
    this.rest();
  }

  // ---- drawing
  resize() {
    if (
      this.planes()
        .map((p) => p.resize())
        .some(Boolean)
    )
      this.sync();
  }

  paint() {
    const { state, theme } = this,
      scene = { ...state, discs: false, circle: state.space === "sphere" } as unknown as Scene & {
        circle: boolean;
      };
    for (const { plane } of this.cards) plane.paint(scene, theme);
    this.map.paint({ ...scene, region: false, forces: false }, theme);
    if (this.painting)
      for (const painted of [this.cardsBox, this.cards[0].plane.canvas])
        painted.dataset.seq = String(this.painting);
  }

  sync() {
    for (const plane of this.planes()) plane.sync(this.state);
    this.rows.show(this.state, this.theme);
    this.draw();
  }

  move() {
    this.sync();
    this.ask(MOVING);
    this.landscape.follow(false);
  }

  // End a gesture: request the fine figure and the link, and announce the verdict.
  rest() {
    this.sync();
    this.ask(RESTING);
    this.landscape.follow(true);
    this.tellSoon(() => {
      if (this.answer)
        this.live.textContent = `${this.judgement.word}. ${this.answer.panels.map((p, k) => `Loss ${k + 1}: ${show(p.energy)}`).join(". ")}`;
    }, 400);
  }

  close() {
    this.hand.orbiting = null;
    this.landscape.close();
    super.close();
  }
}

export const { render, unmount } = defineComponent(Compare);
