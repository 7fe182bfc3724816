// Playback of a recorded training run: proxies among their samples, or curves of an ensemble with a
// line at the current frame. The address holds the frame.
import { h } from "preact";
import { signal } from "@preact/signals";
import type { SetState, Theme } from "../../kit/types.ts";
import type { Place, RecordingData } from "./types.ts";
import { defineComponent, loadStyles, newTheme } from "../../kit/component.ts";
import { div, writeAddress } from "../../kit/dom.ts";
import { Figure } from "../../kit/figure/figure.ts";
import { Player } from "../../kit/frames.ts";
import { mountPanel } from "../../kit/panel/panel.tsx";
import { PROJECTIONS, paintCurves, paintProjections } from "./draw.ts";
import { Page } from "./page.tsx";

type Frame = { number: number };

const PER_FRAME = { projections: 260, ensemble: 22 }; // milliseconds per frame

export class Recording {
  root: ParentNode;
  data: RecordingData;
  whole = div("lab recording");
  ready: Promise<void>;
  theme: Theme;
  setState: SetState;
  player: Player<Frame>;
  figures: Figure[] = [];
  words = signal("");
  values = signal<string[]>([]); // of each curve at the frame shown
  private place: Place = [0, 0, 0];
  private built = "";

  constructor(root: ParentNode, data: RecordingData) {
    this.root = root;
    this.data = data;
    this.player = new Player(this, PER_FRAME[data.kind]);
    this.player.bar.step = "1"; // arrow keys move by one frame
    this.player.bar.addEventListener("change", () => this.tell());
    this.ready = loadStyles(root, "lessons/recording/recording.css").then(() =>
      root.append(this.whole),
    );
  }

  async update(data: RecordingData) {
    await this.ready;
    this.data = data;
    newTheme(this);
    if (data.kind !== this.built || data.at !== Math.round(this.player.at)) this.build();
    this.built = data.kind;
    for (const figure of this.figures) figure.setTheme(this.theme);
    this.show();
  }

  show() {
    mountPanel(this.whole, () => h(Page, { app: this }));
  }

  private build() {
    const { kind, steps, at, curves } = this.data;
    for (const figure of this.figures) figure.close();
    this.figures =
      kind === "projections"
        ? [
            new Figure({
              ...PROJECTIONS,
              draw: (ctx, frame) => paintProjections(ctx, frame, this.data, this.place),
            }),
          ]
        : curves.map(
            ({ title }, i) =>
              new Figure({
                label: title,
                draw: (ctx, frame) => paintCurves(ctx, frame, this.data, this.place, i),
              }),
          );
    this.show();
    const frames = steps.map((_, number) => ({ number }));
    this.player.update(steps, frames[frames.length - 1], (k) => Promise.resolve(frames[k]));
    this.player.loaded = frames;
    this.player.go(at);
  }

  // Called by the player: draw the state between two frames.
  between(from: Frame, to: Frame, share: number) {
    const { data, player } = this,
      k = share < 1 ? from.number : to.number,
      nearest = Math.round(player.at);
    this.place = [from.number, to.number, share];
    this.words.value = data.words[k];
    this.values.value = data.names.map((_, i) =>
      data.curves.map(({ values, unit }) => values[nearest][i].toFixed(2) + unit).join(", "),
    );
    for (const figure of this.figures) {
      figure.canvas.dataset.frame = String(k);
      figure.flush();
    }
    if (!player.playing) this.tell();
  }

  // Write the current frame into the address, and describe it for answering the question.
  private tell() {
    writeAddress(`step=${Math.round(this.player.at)}`, ["hide", "socket"]);
  }

  resize() {
    for (const figure of this.figures) figure.resize();
  }

  close() {
    this.player.pause();
    for (const figure of this.figures) figure.close();
  }
}

export const { render, unmount } = defineComponent(Recording);
