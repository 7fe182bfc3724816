// Explore page: points of a run on a plane, next to the images of the highlighted ones. Python
// sends the points once and reports the selection; everything that moves is drawn here, and only
// the corners of a lasso are sent.
import { render as renderTree } from "preact";
import { effect, signal } from "@preact/signals";
import type { Mounted, SetState } from "../../kit/types.ts";
import type { MapData } from "./types.ts";
import type { Counts } from "./facets.ts";
import { asset } from "../../kit/address.ts";
import { div, el, styled } from "../../kit/dom.ts";
import { Player } from "../../kit/frames.ts";
import { present, withdraw } from "../../kit/present/present.ts";
import { Camera } from "./camera.ts";
import { isMetadata } from "./facets.ts";
import { createFigure } from "./figure.ts";
import { loadColumn, reveal } from "./files.ts";
import { ImageCache } from "./images.ts";
import { Overlay, Page } from "./page.tsx";
import { receive } from "./receive.ts";
import { createState } from "./state.ts";

const STYLES = ["explore", "wall", "sample"].map((name) => `inspection/explore/${name}.css`),
  COUNTING = 100, // ms after which the legend follows an unfinished lasso
  BELOW = 96, // px below the map for the bar of the selection
  LOWEST_MAP = 400,
  NARROW = 920; // as in explore.css
const pages = new WeakMap<HTMLElement, Explore>();

export function render({ data, parentElement, setStateValue, setTriggerValue }: Mounted<MapData>) {
  const page = pages.get(parentElement) ?? new Explore(parentElement, data);
  pages.set(parentElement, page);
  page.setState = setStateValue;
  page.tell = setTriggerValue;
  receive(page, data);
  present(page, data.present);
}

export function unmount(parentElement: HTMLElement) {
  const page = pages.get(parentElement);
  if (!page) return;
  withdraw(page);
  page.close();
  pages.delete(parentElement);
}

// One mounted page: its state, what draws it, and what is under way.
export class Explore {
  readonly s; // state
  readonly root: HTMLElement;
  readonly figure;
  readonly ready: Promise<unknown>;
  readonly camera = new Camera();
  readonly whole = div("lab map-lab");
  readonly overlay = el("div", { style: "display: contents" });
  readonly player: Player<Uint16Array<ArrayBuffer>> = new Player({
    between: (from, to, share) => {
      Object.assign(this.s.cloud.peek() ?? {}, { from, to, share });
      this.figure.invalidate();
    },
  });
  readonly thumbs = new ImageCache(() => this.s.arrived.value++);
  readonly tallied = signal<Counts>({}); // counts that the legend shows
  tell: SetState = () => {};
  setState: SetState = () => {};
  bringImage = () => {}; // brings the image that Tab reaches into view, and focuses it
  // -- requests and timers
  address = ""; // folder of the files of the map
  opened = 0; // number of views that were opened
  tagId = "";
  font = ""; // of names on the map
  selection: string | null = null; // stored, "pending" or none
  seq = 0; // number of the last lasso
  reporting: ReturnType<typeof setTimeout> | undefined;
  dwelling: ReturnType<typeof setTimeout> | undefined;
  foreseen = 0; // frame that previews the lasso
  private counting: ReturnType<typeof setTimeout> | undefined;
  private readonly sizes = new ResizeObserver(() => this.makeRoom());
  private readonly ends: (() => void)[];

  constructor(root: HTMLElement, data: MapData) {
    this.root = root;
    this.s = createState(data);
    this.opened = data.opened;
    this.figure = createFigure(this, el("canvas", { class: "points", "aria-hidden": "true" }));
    this.figure.root.append(this.overlay);
    renderTree(<Page map={this} />, this.whole);
    renderTree(<Overlay map={this} />, this.overlay);
    this.ends = [...follow(this)];
    this.ready = styled(root, ...["theme/layout.css", ...STYLES].map(asset)).then(() => {
      root.append(this.whole);
      for (const part of [this.whole, ...this.whole.querySelectorAll(".bar, .player")])
        this.sizes.observe(part);
    });
  }

  get data() {
    return this.s.data.peek();
  }

  get canvas() {
    return this.figure.canvas;
  }

  // The frame that will paint, for films; 0: nothing is to be painted.
  get asked() {
    return this.figure.request;
  }

  // Range of all points along both axes; while they move, the whole square.
  get extent() {
    const cloud = this.s.cloud.peek();
    return !cloud || this.player.steps.length > 1 ? [1, 1] : cloud.extent;
  }

  // Loops that can be filmed.
  get motions() {
    const { player } = this,
      { at, steps } = player;
    if (steps.length < 2) return [];
    const pose = (share: number) => {
      player.pause();
      return player.go((steps.length - 1) * (1 - Math.abs(1 - 2 * share)));
    };
    return [{ title: "training, forward and back", pose, end: () => player.go(at) }];
  }

  // Fit the figure to its element.
  resize() {
    this.makeRoom();
    this.figure.resize();
  }

  // Paint at once, for films.
  paint() {
    this.figure.flush();
  }

  // Limit the height to the browser window below the header, so that map and images fit on one
  // screen.
  makeRoom() {
    const body = this.whole.querySelector<HTMLElement>(".body"),
      scrolled = document.querySelector('[data-testid="stMain"]')?.scrollTop ?? 0,
      top = (body?.getBoundingClientRect().top ?? 0) + scrolled,
      player = this.player.root.hidden ? 0 : this.player.root.offsetHeight + 8;
    if (!body || !top) return;
    this.s.narrow.value = this.whole.clientWidth <= NARROW;
    const room = Math.max(LOWEST_MAP, Math.round(innerHeight - top - player - BELOW));
    body.style.setProperty("--room", `${room}px`);
  }

  // Show the counts in the legend; it need not follow every pixel of a lasso.
  count(counts: Counts, preview: boolean) {
    if (!preview) this.tallied.value = counts;
    else
      this.counting ??= setTimeout(() => {
        this.counting = undefined;
        this.tallied.value = this.s.counts.peek();
      }, COUNTING);
  }

  close() {
    for (const end of this.ends) end();
    this.sizes.disconnect();
    this.figure.close();
    this.player.pause();
    for (const timer of [this.dwelling, this.reporting, this.counting]) clearTimeout(timer);
    renderTree(null, this.overlay);
    renderTree(null, this.whole);
  }
}

// Follow the state where no component does; return functions that end it.
function* follow(map: Explore) {
  const { s, figure, canvas } = map,
    { names, images, contours, colour } = s.look;
  // state that the figure draws
  const drawn = [s.painted, s.states, s.counts, s.hovered, s.marked, s.card, s.line, s.data];
  yield effect(() => {
    for (const part of [...drawn, s.contours, s.arrived, names, images, contours]) void part.value;
    figure.setTheme(s.theme.value);
    figure.invalidate();
  });
  yield effect(() => map.count(s.counts.value, s.preview.value !== null));
  // the column that colours the points
  yield effect(() => {
    const { value } = colour;
    if (!s.cloud.value || value === "class") return;
    if (isMetadata(value)) reveal(map, value);
    else loadColumn(map, value);
  });
  yield effect(() => {
    const shown = s.painted.value?.colour,
      busy = shown !== colour.value && !(colour.value in s.failed.value);
    if (busy) canvas.setAttribute("aria-busy", "true");
    else canvas.removeAttribute("aria-busy");
    if (shown) canvas.dataset.colour = shown;
  });
  yield effect(() => {
    const row = s.hovered.value;
    canvas.dataset.hovered = row < 0 ? "" : String(s.cloud.value?.indices[row]);
    canvas.dataset.tool = s.tool.value;
  });
  const fit = () => map.makeRoom();
  addEventListener("resize", fit);
  yield () => removeEventListener("resize", fit);
}
