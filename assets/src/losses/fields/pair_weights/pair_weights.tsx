// Pair weights page: two maps of pair weights over similarities, and the triplet under the cursor.
// Python computes everything and writes the link; this module holds the view during gestures.
import type { PairWeightsAnswer, PairWeightsData, PairWeightsRequest, View } from "./types.ts";
import type { SessionPage, Session } from "../../../kit/session.ts";
import type { At, Drag, Frame } from "../../../kit/figure/spec.ts";
import type { Context, Place } from "../../../kit/types.ts";
import type { FigureFormat } from "../../../kit/figure/file.ts";
import { signal } from "@preact/signals";
import { save, tidy } from "../../../kit/dom.ts";
import { Figure } from "../../../kit/figure/figure.ts";
import { SCALES } from "../../../kit/figure/raster.ts";
import { fileOf } from "../../../kit/figure/file.ts";
import { sheetOf } from "../../../kit/figure/sheet.ts";
import { arrow } from "../../../kit/hand.ts";
import { clamp, findPreset, hyperText, mountPanel } from "../../../kit/panel/panel.tsx";
import { defineSession } from "../../../kit/session.ts";
import { mapView, paintMap, rasterise } from "./maps.ts";
import { Layout } from "./layout.tsx";
import { describeMap, describeTriplet } from "./numbers.tsx";
import { paintTriplet } from "./triplet.ts";

const MOVING = 61,
  RESTING = 161, // nodes per side during a gesture, and at rest
  MOST = 0.995; // similarities are kept off 1, where distances have no slope

const within = (x: number) => clamp(x, -MOST, MOST);
type PairWeightsSession = Session<PairWeightsData, PairWeightsRequest, PairWeightsAnswer>;

export class PairWeights implements SessionPage<PairWeightsData, PairWeightsAnswer> {
  readonly session: PairWeightsSession;
  view: View;
  readonly pressed = signal<number | null>(null); // preset that is shown
  readonly numbers = signal<PairWeightsAnswer | null>(null); // last numbers
  readonly maps = signal<PairWeightsAnswer | null>(null); // last maps
  readonly notice = signal("");
  readonly figures: Figure[]; // two maps and the triplet
  readonly render: () => void;
  private top: number | undefined; // top of the scale
  private rasters: OffscreenCanvas[] = [];
  private hover: Place | null = null;

  constructor(session: PairWeightsSession) {
    const { data, whole } = session;
    this.session = session;
    this.view = structuredClone(data.view);
    this.pressed.value = findPreset(data.slides, this.view);
    this.figures = [this.createMap(0), this.createMap(1), this.createTriplet()];
    this.render = mountPanel(whole, () => <Layout app={this} />);
    this.rest();
  }

  private createMap(k: number) {
    return new Figure({
      class: "weights",
      label: `weights of loss ${k + 1}`,
      keys: "Arrow keys move the marker",
      view: mapView,
      touch: "all",
      draw: (ctx, frame) => this.drawMap(ctx, frame, k),
      hover: (at) => this.look(at && this.placeOf(at)),
      press: (at) => this.pin(at),
      key: (event) => this.nudge(event, k),
      change: (phase) => phase === "end" && this.rest(),
      describe: () => describeMap(this, k),
    });
  }

  private createTriplet() {
    return new Figure({
      class: "sphere",
      label: "triplet on the unit sphere",
      draw: (ctx, { view, ink }) => {
        paintTriplet(ctx, view.width, this.numbers.value?.triplet, ink);
        if (this.maps.value) this.session.whole.dataset.seq = String(this.maps.value.id);
      },
      describe: () => describeTriplet(this.numbers.value?.triplet),
    });
  }

  private drawMap(ctx: Context, { view, ink, exported }: Frame, k: number) {
    const maps = this.maps.value;
    paintMap(ctx, view, ink, {
      raster: this.rasters[k],
      lines: maps?.panels[k],
      corners: maps?.[`corners${k}`],
      at: this.view.at,
      hover: exported ? null : this.hover,
    });
  }

  /** Change the state as a control or preset asks for; the scale fits the new values. */
  change(changes: Partial<View>, preset: number | null = null) {
    Object.assign(this.view, changes);
    this.pressed.value = preset;
    this.top = undefined;
    this.render();
    this.rest();
  }

  onLinkFollowed({ view, slides }: PairWeightsData) {
    this.change(structuredClone(view), findPreset(slides, view));
  }

  onTheme() {
    if (this.maps.value) this.prepare(this.maps.value);
    for (const figure of this.figures) figure.setTheme(this.session.theme.value);
  }

  resize() {
    for (const figure of this.figures) figure.resize();
  }

  close() {
    for (const figure of this.figures) figure.close();
  }

  // ---- requests and answers
  private ask(n: number) {
    const { view, top, hover } = this;
    this.session.send({ view, n, top, settle: n === RESTING, ...(hover && { at: hover }) });
  }

  // Request the numbers under the pointer, unless a map is waiting to be sent.
  private look(place: Place | null) {
    const { view, session } = this,
      { waiting } = session.link;
    this.hover = place;
    this.draw();
    if (!waiting) session.send({ view, maps: false, ...(place && { at: place }) });
    else if (place) waiting.at = place;
    else delete waiting.at;
  }

  onAnswer(answer: PairWeightsAnswer) {
    this.numbers.value = answer;
    this.notice.value = this.session.slower;
    if (answer.n) {
      this.top = answer.top;
      this.prepare(answer);
      this.maps.value = answer;
      if (answer.query !== undefined) {
        this.session.setLink(answer.query, this.session.data.kept);
        for (const figure of this.figures) figure.announce();
      }
    }
    this.draw();
  }

  private prepare(maps: PairWeightsAnswer) {
    const { theme } = this.session;
    this.rasters = [0, 1].map((k) => rasterise(maps, maps[`weight${k}`], theme.value));
  }

  private draw() {
    for (const figure of this.figures) figure.invalidate();
  }

  // ---- gestures
  private placeOf = ({ place }: At) => place.map((v) => Number(within(v).toFixed(3)));

  private pin(at: At): Drag {
    const move = (to: At) => {
      this.view.at = this.placeOf(to);
      this.pressed.value = null;
      this.look(null);
    };
    move(at);
    return { move, end: (_, moved) => moved || this.rest() };
  }

  private nudge(event: KeyboardEvent, k: number) {
    const step = arrow(event);
    if (!step) return false;
    this.figures[k].nudge(() => {
      this.view.at = this.view.at.map((v, i) => Number(within(v + 0.01 * step[i]).toFixed(4)));
      this.look(null);
    });
    return true;
  }

  /** Request coarse maps while a control is dragged. */
  move() {
    this.pressed.value = null;
    this.ask(MOVING);
  }

  /** Limit the similarity of positive and negative to where distances have a slope. */
  setRival(x: number) {
    this.view.pn = within(x);
    this.move();
  }

  /** End a gesture: request fine maps and the link. */
  rest() {
    this.ask(RESTING);
  }

  /** Save both maps with titles and scale as a PNG. */
  async save(format: FigureFormat) {
    const maps = this.maps.value,
      { panels, by, weight, rival, pn } = this.view,
      { theme, schema, data } = this.session;
    if (!maps) return;
    const most = Number(maps.top.toPrecision(3)),
      place = `N ${data.menus.rival[rival]}${rival === "fixed" ? `: ${tidy(pn)}` : ""}`;
    const sheet = sheetOf(
      panels.map(({ loss, hyper }, k) => [
        this.figures[k],
        schema.losses[loss].title,
        hyperText(hyper),
      ]),
      960,
      theme.value,
      {
        text: `d(loss)/d${by}(${weight[0]},${weight[1]})   ${maps.signed ? `−${most}` : 0}`,
        colour: SCALES[theme.value][maps.signed ? "signed" : "ramp"],
        more: `${most}   (${place})`,
      },
    );
    const name = ["pair-weights", ...panels.map(({ loss }) => loss)].join("-");
    save(`${name}.${format}`, await fileOf(sheet, format));
  }
}

export const { render, unmount } = defineSession(
  { api: "api/pair_weights", styles: "losses/fields/pair_weights/pair_weights.css" },
  (session: PairWeightsSession) => new PairWeights(session),
);
