// Collages, one row per pooling with its weight map on top. The page controls the opacity; a click
// chooses a collage.
import type { SetState, Theme } from "../../kit/types.ts";
import type { CollageData, CollageImage, CollageRow } from "./types.ts";
import { defineComponent, loadStyles, newTheme, paintScale } from "../../kit/component.ts";
import { drawing, el, setText } from "../../kit/dom.ts";
import { Story } from "../story/story.ts";

// Black, purple, orange, pale yellow: lighter means more weight, on any image and for any colour
// vision.
const HEAT = [
  [0, 0, 4],
  [66, 10, 104],
  [147, 38, 103],
  [221, 81, 58],
  [252, 165, 10],
  [252, 255, 164],
];
const heat = (t: number) => {
  const x = Math.min(Math.max(t, 0), 1) * (HEAT.length - 1),
    i = Math.min(Math.floor(x), HEAT.length - 2),
    f = x - i;
  return HEAT[i].map((v, c) => Math.round(v + (HEAT[i + 1][c] - v) * f));
};
const bytes = (text: string) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const percent = (x: number) => `${(100 * x).toFixed(0)} %`;
const PLACES = ["top left", "top right", "bottom left", "bottom right"];
const place = (tile: number, grid: number) =>
  grid === 2 ? PLACES[tile] : `in row ${Math.floor(tile / grid) + 1}, column ${(tile % grid) + 1}`;

class Collage {
  root: HTMLElement;
  opacity: number;
  story: Story;
  whole: HTMLDivElement;
  ready: Promise<void>;
  slider: HTMLInputElement;
  number: HTMLOutputElement;
  legend: HTMLCanvasElement;
  most: HTMLSpanElement;
  marker: HTMLSpanElement;
  here: HTMLParagraphElement;
  lines: HTMLDivElement;
  data: CollageData;
  tag: string;
  theme: Theme;
  setState: SetState;

  constructor(root: HTMLElement, data: CollageData) {
    this.root = root;
    this.opacity = data.opacity;
    this.story = new Story({ data, hidden: new Set(data.hide) }, "collage", {
      back: ["gap_vs_gsp", "can it be learned?"],
      next: ["settings", "train one"],
    });
    this.whole = el("div", { class: "lab collage" });
    root.append(this.whole);
    this.ready = loadStyles(root, "pooling/collage/collage.css").then(() => this.build());
  }

  close() {}

  build() {
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: 1,
      step: 0.05,
      "aria-label": "opacity of the weight maps",
      oninput: () => this.fade(Number(this.slider.value)),
      onchange: () => this.setState("opacity", this.opacity),
    });
    this.number = el("output");
    this.legend = el("canvas", { width: 128, height: 1, role: "img" });
    paintScale(this.legend, heat);
    this.most = el("span");
    this.marker = el(
      "span",
      { class: "scale" },
      el("i", { class: "marker" }),
      "tile that shows the class",
    );
    this.here = el("p", { class: "here", "aria-live": "polite" });
    this.lines = el("div");
    this.whole.append(
      el(
        "div",
        { class: "bar" },
        el("label", {}, "Weight map", this.slider, this.number),
        el("span", { class: "scale" }, "0", this.legend, this.most),
        this.marker,
      ),
      this.lines,
      this.story.whole,
      this.here,
    );
    this.slider.value = String(this.opacity);
    this.fade(this.opacity);
  }

  fade(opacity: number) {
    this.opacity = opacity;
    setText(this.number, percent(opacity));
    for (const canvas of this.lines.querySelectorAll("canvas"))
      canvas.style.opacity = String(opacity);
  }

  async update(data: CollageData) {
    this.data = data;
    await this.ready;
    newTheme(this);
    if (data !== this.data) return;
    if (data.tag !== this.tag) this.draw(data);
    this.tag = data.tag;
    this.story.tell(data.verdict, data.next);
    for (const cell of this.lines.querySelectorAll("button"))
      cell.setAttribute("aria-pressed", String(Number(cell.dataset.index) === data.chosen));
  }

  draw({ rows, images, most, grid, side, followed }: CollageData) {
    setText(this.most, `${most.toFixed(most < 10 ? 1 : 0)} × the average weight`);
    this.legend.setAttribute(
      "aria-label",
      `black is no weight, pale yellow ${most.toFixed(1)} times the average`,
    );
    this.marker.hidden = !grid;
    this.marker.style.display = grid ? "" : "none";
    this.lines.replaceChildren(
      ...rows.map((row) => {
        const maps = bytes(row.maps),
          size = side[0] * side[1];
        const cells = images.map((image, i) =>
          this.cell(row, image, i, maps.subarray(i * size, (i + 1) * size)),
        );
        return el(
          "div",
          { class: "line", role: "group", "aria-label": row.name },
          el("h4", {}, el("bdi", {}, row.name), el("small", {}, row.words)),
          el("div", { class: "cells" }, ...cells),
        );
      }),
    );
    const more = followed ? "; click one to see its nearest neighbours in each run" : "";
    setText(this.here, `Point at an image to read a weight${more}.`);
    this.fade(this.opacity);
    this.whole.dataset.rows = String(rows.length);
  }

  cell(row: CollageRow, image: CollageImage, i: number, map: Uint8Array) {
    const { side, most, grid } = this.data,
      [h, w] = side;
    const canvas = el("canvas", { width: w, height: h });
    const ctx = drawing(canvas),
      pixels = ctx.createImageData(w, h);
    map.forEach((value, j) => pixels.data.set([...heat(value / 255), 255], 4 * j));
    ctx.putImageData(pixels, 0, 0);
    const share = row.shares ? `${percent(row.shares[i])} on the tile` : "";
    const where = grid ? `, foreground ${place(image.tile, grid)}` : "";
    const source = image.source || (row.images && row.images + image.index);
    const layers = el(
      "span",
      { class: "image" },
      ...(source ? [el("img", { src: source, alt: "", loading: "lazy" })] : []),
      canvas,
    );
    if (grid) {
      const tile = el("span", { class: "tile" }),
        part = 100 / grid;
      const left = `${part * (image.tile % grid)}%`,
        top = `${part * Math.floor(image.tile / grid)}%`;
      Object.assign(tile.style, { width: `${part}%`, height: `${part}%`, left, top });
      layers.append(tile);
    }
    // Names start with the visible text, so that speech input can address the button.
    const seen = [share, image.name].filter(Boolean).join(" "),
      label = `${seen}, sample ${image.index}${where}`;
    return el(
      "button",
      {
        class: "cell",
        "data-index": image.index,
        "aria-label": label,
        title: label,
        onclick: () => this.setState("chosen", image.index),
        onpointermove: (event) => {
          const box = canvas.getBoundingClientRect();
          const x = Math.floor(((event.clientX - box.left) / box.width) * w),
            y = Math.floor(((event.clientY - box.top) / box.height) * h);
          if (x < 0 || y < 0 || x >= w || y >= h) return;
          const times = (map[y * w + x] / 255) * most;
          setText(
            this.here,
            `${row.name}, ${image.name}: weight ${times.toFixed(2)} × the average, ${((100 * times) / (w * h)).toFixed(2)} % of the total, at row ${y + 1}, column ${x + 1} of ${h} × ${w}`,
          );
        },
      },
      el("span", { class: "frame" }, layers),
      el(
        "span",
        { class: "under" },
        el("span", { class: "share" }, share),
        " ",
        el("bdi", { class: "name" }, image.name),
      ),
    );
  }
}

export const { render, unmount } = defineComponent(Collage);
