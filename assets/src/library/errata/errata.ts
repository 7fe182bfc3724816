// Interactive counter-example: printed gradients next to the true ones. Python computes both; this
// module draws and sends requests.
import { h } from "preact";
import { signal } from "@preact/signals";
import type { Places } from "../../kit/panel/panel.tsx";
import type { Key } from "../../kit/figure/legend.tsx";
import type { Phase } from "../../kit/figure/spec.ts";
import type { Scene, TruthAnswer, TruthData, TruthRequest } from "./types.ts";
import { POINTS, rampColour } from "../../kit/colours.ts";
import { save } from "../../kit/dom.ts";
import type { FigureFormat } from "../../kit/figure/file.ts";
import { Figure } from "../../kit/figure/figure.ts";
import { fileOf } from "../../kit/figure/file.ts";
import { plane } from "../../kit/figure/view.ts";
import { mountPanel } from "../../kit/panel/panel.tsx";
import { rasterise } from "../../kit/plane/paint.ts";
import { defineSession, Session } from "../../kit/session.ts";
import { colourOf, drawScene } from "./draw.ts";
import { Page, vector } from "./page.tsx";

type TruthSession = Session<TruthData, TruthRequest, TruthAnswer>;
const MOVING = 61,
  RESTING = 161; // nodes per side of the map during a gesture, and at rest

export class Errata {
  readonly session: TruthSession;
  readonly answer = signal<TruthAnswer>();
  readonly places = signal({} as Places);
  readonly figure: Figure;
  scene: Scene;
  private linking = Infinity; // number of the request for the link
  private scale: number | null = null;
  private map: OffscreenCanvas | null | undefined;
  private readonly show: () => void;

  constructor(session: TruthSession) {
    this.session = session;
    this.scene = structuredClone(session.data.scene);
    this.place();
    this.figure = new Figure({
      label: "counter-example",
      view: (width) => plane(this.scene.view, width),
      draw: (ctx, frame) => {
        drawScene(ctx, frame, this.scene, this.answer.value, this.map);
        if (this.answer.value && !frame.exported)
          this.figure.canvas.dataset.seq = String(session.answered);
      },
      handles: () =>
        POINTS.map((name) => ({
          name,
          at: this.scene[name],
          title: `Drag the ${name}, or move it with the arrow keys`,
          move: (place) => {
            this.scene[name] = place;
          },
        })),
      change: (phase) => this.change(phase),
      legend: () => this.legend(),
      describe: () => this.summary(),
    });
    this.show = mountPanel(session.whole, () => h(Page, { app: this }));
    this.ask(RESTING);
  }

  onTheme() {
    this.figure.setTheme(this.session.theme.value);
    this.place();
    this.shade();
    this.figure.invalidate();
  }

  onAnswer(answer: TruthAnswer) {
    this.answer.value = answer;
    this.scale = answer.scale;
    this.shade();
    if (answer.id >= this.linking) {
      // the link is updated at rest; an older answer may still be pending
      this.linking = Infinity;
      this.session.setLink(answer.query, ["socket", "source"]);
      this.figure.announce();
    }
    this.figure.invalidate();
  }

  resize() {
    this.figure.resize();
  }

  close() {
    this.figure.close();
  }

  // Request the answer to a change of the scene, or to a state at rest.
  change(phase: Phase) {
    this.place();
    this.figure.invalidate();
    if (phase === "move") this.ask(MOVING);
    if (phase === "end") this.linking = this.ask(RESTING);
  }

  // Scan with another point.
  setProbe(name: Scene["probe"]) {
    this.scene.probe = name;
    this.scale = null;
    this.change("end");
  }

  reset() {
    this.scene = structuredClone(this.session.data.default);
    this.scale = null;
    this.show();
    this.change("end");
  }

  async download(format: FigureFormat | "json") {
    const { title } = this.session.data;
    if (format !== "json") save(`${title}.${format}`, await fileOf(this.figure.sheet(2), format));
    else if (this.answer.value) {
      const { printed, true: truth, difference, printed_energy, true_energy } = this.answer.value,
        numbers = { printed, true: truth, difference, printed_energy, true_energy },
        text = JSON.stringify({ ...this.scene, ...numbers }, null, 2);
      save(`${title}.json`, new Blob([text], { type: "application/json" }));
    }
  }

  private ask(n: number) {
    const scale = this.scale && n === MOVING ? { scale: this.scale } : {};
    return this.session.send({ scene: this.scene, n, ...scale });
  }

  private place() {
    this.places.value = { ...this.scene, theme: this.session.theme.value };
  }

  private shade() {
    const answer = this.answer.value;
    if (answer)
      this.map = rasterise({ ...answer, active: undefined }, this.session.theme.value).colour;
  }

  private legend(): Key[] {
    const theme = this.session.theme.value,
      [printed, truth] = this.session.data.sides,
      scale = this.answer.value?.scale ?? 0,
      ramp = {
        colour: RAMPS[theme],
        low: "0",
        high: `≥ ${Number(scale.toPrecision(3))}`,
      };
    return [
      { text: `${printed}: gradient`, mark: "dashed", colour: colourOf("printed", theme) },
      { text: `${truth}: gradient by autograd`, colour: colourOf("true", theme) },
      { text: "map: difference", ramp, hidden: !scale },
    ];
  }

  private summary() {
    const { printed, true: truth } = this.answer.value ?? {},
      [left, right] = this.session.data.sides;
    if (!printed || !truth) return "";
    return POINTS.map(
      (name, i) =>
        `gradient on the ${name}: ${left} ${vector(printed[i])}, ${right} ${vector(truth[i])}`,
    ).join("; ");
  }
}

const RAMPS = {
  light: (t: number) => rampColour(t, "light"),
  dark: (t: number) => rampColour(t, "dark"),
};

export const { render, unmount } = defineSession(
  { api: "api/truth", styles: "library/errata/errata.css" },
  (session: TruthSession) => new Errata(session),
);
