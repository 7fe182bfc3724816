// Playback of a recorded training run: proxies among their samples, or curves of an ensemble with a
// line at the current frame. The address holds the frame.
import { signal } from "@preact/signals";
import type { SetState, Theme } from "../../kit/types.ts";
import type { RecordingData } from "./types.ts";
import { INK, LISTS } from "../../kit/colours.ts";
import { defineComponent, loadStyles, newTheme } from "../../kit/component.ts";
import { div, drawing, writeAddress } from "../../kit/dom.ts";
import { Player } from "../../kit/frames.ts";
import { Foreign, mountPanel } from "../../kit/panel/panel.tsx";
import { paintSteps } from "../../kit/chart/steps.tsx";
import { SHAPES, shape } from "../../kit/plot.ts";
import { finest } from "../../kit/screen.ts";

export type Frame = { number: number };

const UNIT = 1000; // units per radius of the disc
const PER_FRAME = { projections: 260, ensemble: 22 }; // milliseconds per frame
const RIM = 1.06; // half the side of the view, in radii of the disc
const CURVES = 210; // height in pixels
// Colours by class, as on paper (dmlcore/figures/recordings.py).
const COLOURS = LISTS.recording;
const SMOOTH = 15; // frames per running mean
const DASHES = [[], [7, 3], [7, 3, 2, 3], [2, 3]];

// Return the running mean of a curve over the last frames.
const recent = (values: number[][], i: number) => (k: number) => {
  const rows = values.slice(Math.max(0, k + 1 - SMOOTH), k + 1);
  return rows.reduce((sum, row) => sum + row[i], 0) / rows.length;
};

class Recording {
  root: ParentNode;
  data: RecordingData;
  player: Player<Frame>;
  observer: ResizeObserver;
  ready: Promise<void>;
  theme: Theme;
  setState: SetState;
  whole = div("lab recording");
  words = signal("");
  show: () => void;
  canvases: HTMLCanvasElement[] = [];
  place: [from: number, to: number, share: number] = [0, 0, 0];
  built = "";

  constructor(root: ParentNode, data: RecordingData) {
    this.root = root;
    this.data = data;
    this.player = new Player(this, PER_FRAME[data.kind]);
    this.player.bar.step = "1"; // arrow keys move by one frame
    this.player.bar.addEventListener("change", () => this.tell());
    this.observer = new ResizeObserver(() => this.draw());
    this.ready = loadStyles(root, "lessons/recording/recording.css").then(() => {
      root.append(this.whole);
      newTheme(this);
      this.show = mountPanel(this.whole, () => <Page app={this} />);
      this.observer.observe(this.whole);
    });
  }

  async update(data: RecordingData) {
    await this.ready;
    this.data = data;
    newTheme(this);
    if (data.kind !== this.built || data.at !== Math.round(this.player.at)) this.build();
    this.built = data.kind;
    this.draw();
  }

  build() {
    const { steps, at } = this.data;
    this.canvases.length = 0;
    this.show();
    const frames = steps.map((_, number) => ({ number }));
    this.player.update(steps, frames[frames.length - 1], (k) => Promise.resolve(frames[k]));
    this.player.loaded = frames;
    this.player.go(at);
  }

  // Called by the player: draw the state between two frames.
  between(from: Frame, to: Frame, share: number) {
    this.place = [from.number, to.number, share];
    const k = share < 1 ? from.number : to.number;
    this.words.value = this.data.words[k];
    for (const canvas of this.canvases) canvas.dataset.frame = String(k);
    this.draw();
    if (!this.player.playing) this.tell();
  }

  // Write the current frame into the address, and describe it for answering the question.
  tell() {
    const k = Math.round(this.player.at);
    writeAddress(`step=${k}`, ["hide", "socket"]);
  }

  draw() {
    if (!this.canvases.length || !this.whole.clientWidth) return;
    if (this.data.kind === "projections") this.plane(this.canvases[0]);
    else this.canvases.forEach((canvas, i) => this.curves(canvas, i));
    this.show();
  }

  resizeCanvas(canvas: HTMLCanvasElement, width: number, height: number) {
    const sharp = finest(canvas);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * sharp);
    canvas.height = Math.round(height * sharp);
    const ctx = drawing(canvas);
    ctx.setTransform(sharp, 0, 0, sharp, 0, 0);
    return ctx;
  }

  plane(canvas: HTMLCanvasElement) {
    const { places, labels, proxies } = this.data,
      [from, to, share] = this.place,
      side = Math.min(this.whole.clientWidth, 520),
      ctx = this.resizeCanvas(canvas, side, side),
      ink = INK[this.theme],
      colours = COLOURS[this.theme];
    // When a projection ends, two frames have the same step: proxies jump there, as they did in
    // training.
    const jumps = this.data.steps[from] === this.data.steps[to],
      x = (i: number) => {
        const a = places[from][i],
          v = jumps && share < 1 ? a : a + share * (places[to][i] - a);
        return v / UNIT / RIM;
      },
      X = (i: number) => (side / 2) * (1 + x(2 * i)),
      Y = (i: number) => (side / 2) * (1 - x(2 * i + 1));
    ctx.clearRect(0, 0, side, side);
    ctx.strokeStyle = ink.faint;
    ctx.beginPath();
    ctx.arc(side / 2, side / 2, side / 2 / RIM, 0, 7);
    ctx.stroke();
    ctx.globalAlpha = 0.6;
    labels.forEach((label, i) => {
      ctx.fillStyle = colours[label];
      shape(ctx, SHAPES[label % SHAPES.length], X(i), Y(i), 3.4);
      ctx.fill();
    });
    ctx.globalAlpha = 1;
    ctx.strokeStyle = ink.text;
    ctx.lineWidth = 1.2;
    const count = places[from].length / 2 - labels.length;
    for (let i = 0; i < count; i++) {
      ctx.fillStyle = colours[Math.floor(i / proxies)];
      shape(ctx, "diamond", X(labels.length + i), Y(labels.length + i), 7);
      ctx.fill();
      ctx.stroke();
    }
  }

  curves(canvas: HTMLCanvasElement, index: number) {
    const { curves, steps } = this.data,
      { title, values, noisy } = curves[index],
      [from, to, share] = this.place,
      width = this.whole.clientWidth,
      ctx = this.resizeCanvas(canvas, width, CURVES),
      colours = COLOURS[this.theme];
    const lines = values[0].map((_, i) => ({
      colour: colours[i],
      dash: DASHES[i],
      ...(noisy
        ? { value: recent(values, i), noisy: (k: number) => values[k][i] }
        : { value: (k: number) => values[k][i] }),
    }));
    const step = from + share * (to - from),
      look = { title, theme: this.theme };
    paintSteps(ctx, { width, height: CURVES }, lines, { last: steps.length - 1, step }, look);
  }

  close() {
    this.player.pause();
    this.observer.disconnect();
  }
}

function Page({ app }: { app: Recording }) {
  const { data, player, canvases } = app;
  if (!data) return null;
  const titles = data.kind === "projections" ? [""] : data.curves.map(({ title }) => title);
  return (
    <>
      {titles.map((title, i) => (
        <canvas
          key={title}
          role="img"
          aria-label={title || "samples, and diamonds among them"}
          ref={(canvas) => {
            if (canvas) canvases[i] = canvas;
          }}
        />
      ))}
      <Foreign element={player.root} />
      <div class="keys" hidden={!data.names.length}>
        <Legend app={app} />
      </div>
      <p class="words">{app.words}</p>
    </>
  );
}

// Legend of the curves with their values at the frame shown.
function Legend({ app: { data, player, theme } }: { app: Recording }) {
  const k = Math.round(player.at);
  return (
    <>
      {data.names.map((name, i) => (
        <span key={name}>
          <svg width={26} height={8}>
            <line
              x1={0}
              x2={26}
              y1={4}
              y2={4}
              stroke={COLOURS[theme][i]}
              stroke-width="2.2"
              stroke-dasharray={DASHES[i].join(" ")}
            />
          </svg>
          {`${name} ${data.curves.map(({ values, unit }) => values[k][i].toFixed(2) + unit).join(", ")}`}
        </span>
      ))}
    </>
  );
}

export const { render, unmount } = defineComponent(Recording);
