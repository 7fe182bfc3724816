// Playback of recorded frames with interpolation between two frames, on one clock.
import { el, setText, still } from "./dom.ts";

const PER_FRAME = 900; // milliseconds per frame

// F: type of a frame
export class Player<F> {
  map: { between(from: F, to: F, share: number): unknown };
  perFrame: number;
  button: HTMLButtonElement;
  bar: HTMLInputElement;
  text: HTMLOutputElement;
  root: HTMLDivElement;
  frames: Promise<F>[] = [];
  loaded: F[] = [];
  steps: number[] = [];
  fetchFrame: (k: number) => Promise<F>;
  at = 0;
  playing = false;

  // map: draws interpolated frames
  // perFrame: milliseconds per frame
  constructor(
    map: { between(from: F, to: F, share: number): unknown },
    perFrame: number = PER_FRAME,
  ) {
    this.map = map;
    this.perFrame = perFrame;
    this.button = el(
      "button",
      { "aria-label": "play", onclick: () => (this.playing ? this.pause() : this.play()) },
      "▶",
    );
    this.bar = el("input", {
      type: "range",
      min: 0,
      max: 1,
      step: 0.01,
      "aria-label": "training step",
    });
    this.bar.addEventListener("input", () => {
      this.pause();
      this.go(Number(this.bar.value));
    });
    this.bar.addEventListener("change", () => this.settle());
    this.text = el("output", {});
    this.root = el("div", { class: "player", hidden: true }, this.button, this.bar, this.text);
  }

  // Set the frames to play. Frames are fetched when needed, then all in the background; the last
  // one is present from the start.
  update(steps: number[], last: F, fetchFrame: (k: number) => Promise<F>) {
    this.pause();
    this.steps = steps;
    this.fetchFrame = fetchFrame;
    this.frames = [];
    this.root.hidden = steps.length < 2;
    if (steps.length < 2) return;
    this.frames[steps.length - 1] = Promise.resolve(last);
    this.loaded = [];
    this.loaded[steps.length - 1] = last;
    this.bar.max = String(steps.length - 1);
    this.at = steps.length - 1;
    this.show();
  }

  frame(k: number) {
    this.frames[k] ??= this.fetchFrame(k).then((xy) => (this.loaded[k] = xy));
    return this.frames[k];
  }

  // Go to a position between two frames; draw once both are loaded.
  async go(at: number) {
    this.at = at;
    this.show();
    const k = Math.min(Math.floor(at), this.steps.length - 2),
      pair = [this.loaded[k], this.loaded[k + 1]];
    if (!pair[0] || !pair[1]) {
      await Promise.all([this.frame(k), this.frame(k + 1)]);
      if (this.at === at) this.go(at);
      return;
    }
    // with reduced motion, jump from frame to frame without interpolation
    const share = still() ? Math.floor(at - k) : at - k;
    if (share === 0 || share === 1) this.map.between(pair[share], pair[share], 0);
    else this.map.between(pair[0], pair[1], share);
    if (k + 2 < this.steps.length) this.frame(k + 2);
  }

  settle() {
    // a lasso selects within a frame, never between two
    const k = Math.round(this.at);
    if (this.steps.length > 1) this.go(k);
    return k;
  }

  async play() {
    if (this.at >= this.steps.length - 1) await this.go(0);
    this.playing = true;
    setText(this.button, "❚❚");
    this.button.setAttribute("aria-label", "pause");
    let last: number | null = null;
    const tick = async (now: number) => {
      if (!this.playing) return;
      const next = Math.min(
        this.at + (last === null ? 0 : (now - last) / this.perFrame),
        this.steps.length - 1,
      );
      last = now;
      const k = Math.floor(next);
      if (!this.loaded[k] || (k + 1 < this.steps.length && !this.loaded[k + 1])) {
        // waits for the network, but does not block it
        await Promise.all([this.frame(k), this.frame(Math.min(k + 1, this.steps.length - 1))]);
        last = null;
      } else this.go(next);
      if (next >= this.steps.length - 1) return this.pause();
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() {
    this.playing = false;
    setText(this.button, "▶");
    this.button.setAttribute("aria-label", "play");
  }

  show() {
    const step = Math.round(
      this.steps[Math.floor(this.at)] +
        (this.at % 1) * ((this.steps[Math.ceil(this.at)] ?? 0) - this.steps[Math.floor(this.at)]),
    );
    this.bar.value = String(this.at);
    this.bar.setAttribute("aria-valuetext", `step ${step}`);
    setText(
      this.text,
      `step ${step.toLocaleString("en")} of ${this.steps[this.steps.length - 1].toLocaleString("en")}`,
    );
    this.root.dataset.at = String(this.at);
  }
}
