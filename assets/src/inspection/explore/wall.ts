// Images of the highlighted points; only those in view have elements, however many there are.
import type { MapView } from "./explore.ts";
import { div, el, setText } from "../../kit/dom.ts";

const GAP = 4,
  SPARE = 2; // rows of images above and below the visible ones

export class Wall {
  map: MapView;
  rows: Int32Array<ArrayBuffer>;
  columns: number;
  asked: number | undefined;
  active: number;
  tiles: Map<number, HTMLButtonElement>;
  said: HTMLOutputElement;
  inner: HTMLDivElement;
  none: HTMLParagraphElement;
  view: HTMLDivElement;
  key: HTMLSpanElement;
  root: HTMLDivElement;
  observer: ResizeObserver;
  constructor(map: MapView) {
    this.map = map;
    this.rows = new Int32Array();
    this.columns = 1;
    this.asked = undefined; // request of the next animation frame
    this.active = 0; // position among the rows of the image that Tab reaches
    this.tiles = new Map(); // tiles by position
    this.said = el("output", { class: "said", "aria-live": "polite", "aria-label": "images" });
    this.inner = div("inner");
    this.none = el("p", { class: "none", hidden: true });
    this.view = el("div", { class: "view", role: "group", "aria-label": "images" }, this.inner);
    this.key = el(
      "span",
      { class: "frames", hidden: true },
      el("i", { class: "right" }),
      "nearest neighbour right",
      el("i", { class: "wrong" }),
      "wrong",
    );
    this.root = div("wall", div("line", this.said, this.key), this.none, this.view);
    // capture: error events of images do not bubble
    this.inner.addEventListener("error", () => this.showMissing(), true);
    this.view.addEventListener("scroll", () => this.schedulePaint());
    this.view.addEventListener("keydown", (e) => this.press(e));
    for (const [kind, on] of [
      ["pointerover", true],
      ["pointerleave", false],
    ] as const)
      this.view.addEventListener(kind, (e) => this.point(on ? e.target : null));
    this.observer = new ResizeObserver(() => this.layOut());
    this.observer.observe(this.view);
  }

  showMissing() {
    this.none.hidden = false;
    setText(
      this.none,
      "Images are missing because the run or its data set was removed. Reload the page.",
    );
  }

  close() {
    this.observer.disconnect();
  }

  // Remove the images of another run.
  clear() {
    for (const tile of this.tiles.values()) tile.remove();
    this.tiles.clear();
    this.view.scrollTop = 0;
  }

  // Show the images of the given rows.
  // text: heading with their number
  show(rows: Int32Array<ArrayBuffer>, text: string) {
    setText(this.said, text);
    this.none.hidden = rows.length > 0;
    setText(this.none, rows.length ? "" : "No sample passes these filters.");
    const row = this.rows[this.active];
    this.rows = rows;
    this.active = Math.max(0, row === undefined ? 0 : rows.indexOf(row));
    this.layOut();
  }

  layOut() {
    const size = this.map.look.size + GAP,
      width = this.view.clientWidth;
    if (!width) return;
    this.columns = Math.max(1, Math.floor((width + GAP) / size));
    this.inner.style.height = `${Math.ceil(this.rows.length / this.columns) * size}px`;
    this.inner.style.setProperty("--size", `${this.map.look.size}px`);
    this.paint();
  }

  schedulePaint() {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = undefined;
      this.paint();
    });
  }

  // Return the visible positions, with some spare rows around them.
  visiblePlaces() {
    const size = this.map.look.size + GAP,
      first = Math.floor(this.view.scrollTop / size) - SPARE,
      last = Math.ceil((this.view.scrollTop + this.view.clientHeight) / size) + SPARE;
    return [
      Math.max(0, first * this.columns),
      Math.min(this.rows.length, Math.max(0, last) * this.columns),
    ];
  }

  paint() {
    const [from, to] = this.visiblePlaces(),
      size = this.map.look.size + GAP,
      { wrong } = this.map;
    for (const [place, tile] of this.tiles)
      if (place < from || place >= to || Number(tile.dataset.row) !== this.rows[place]) {
        tile.remove();
        this.tiles.delete(place);
      }
    for (let place = from; place < to; place++) {
      const row = this.rows[place],
        tile = this.tiles.get(place) ?? this.tile(place, row);
      tile.style.transform = `translate(${(place % this.columns) * size}px, ${Math.floor(place / this.columns) * size}px)`;
      tile.tabIndex = place === this.active ? 0 : -1;
      const verdict = wrong(row);
      tile.classList.toggle("wrong", verdict === true);
      tile.classList.toggle("right", verdict === false);
    }
    this.key.hidden = !this.view.querySelector(".tile.right, .tile.wrong");
    this.view.dataset.shown = String(to - from);
    this.view.dataset.count = String(this.rows.length);
  }

  tile(place: number, row: number) {
    const { map } = this,
      index = map.cloud.indices[row],
      text = map.titleOf(row);
    const tile = el(
      "button",
      { class: "tile", "data-row": row, "data-index": index, "aria-label": text, title: text },
      el("img", { src: map.data.images + index, alt: "" }),
    );
    tile.addEventListener("click", () => {
      this.active = this.rows.indexOf(row);
      map.sample.open(row);
    });
    this.tiles.set(place, tile);
    this.inner.append(tile);
    return tile;
  }

  // Highlight the point of the image under the pointer on the map, and vice versa.
  point(target: EventTarget | null) {
    const tile = target instanceof Element ? target.closest(".tile") : null;
    this.map.hover(tile instanceof HTMLElement ? Number(tile.dataset.row) : -1, false);
  }
  light(row: number) {
    for (const tile of this.tiles.values())
      tile.classList.toggle("lit", Number(tile.dataset.row) === row);
  }

  press(e: KeyboardEvent) {
    const step = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -this.columns,
      ArrowDown: this.columns,
      Home: -Infinity,
      End: Infinity,
    }[e.key];
    if (step === undefined || e.ctrlKey || e.metaKey || e.altKey || !this.rows.length) return;
    e.preventDefault();
    this.bring(Math.min(this.rows.length - 1, Math.max(0, this.active + step)), true);
  }

  bring(place: number, focus: boolean) {
    const size = this.map.look.size + GAP,
      top = Math.floor(place / this.columns) * size;
    this.active = place;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    else if (top + size > this.view.scrollTop + this.view.clientHeight)
      this.view.scrollTop = top + size - this.view.clientHeight;
    this.paint();
    if (focus) this.tiles.get(place)?.focus({ preventScroll: true });
  }
}
