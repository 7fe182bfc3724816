// Explore page: points of a run on a plane, next to the images of the highlighted ones. Python
// sends the points once and reports the selection; everything that moves is drawn here, and only
// the corners of a lasso are sent.
import { render as renderTree } from "preact";
import { batch, effect, signal } from "@preact/signals";
import type { Mounted, SetState } from "../../kit/types.ts";
import type { Look, MapData, Points } from "./types.ts";
import type { State } from "./state.ts";
import { asset } from "../../kit/address.ts";
import { applyTheme, div, el, styled } from "../../kit/dom.ts";
import { Player } from "../../kit/frames.ts";
import { Live } from "../../kit/panel/readouts.tsx";
import { present, withdraw } from "../../kit/present/present.ts";
import { applySelection, openSample } from "./actions.ts";
import { Camera } from "./camera.ts";
import { Card, placeCard } from "./card.tsx";
import { Cloud } from "./cloud.ts";
import { FILTERS, chosenMetadata, isMetadata, readTags } from "./facets.ts";
import { createFigure, showAll } from "./figure.ts";
import { loadColumn, loadFrame, loadTags, reveal, tryFetch } from "./files.ts";
import { ImageCache } from "./images.ts";
import { Legend } from "./legend.tsx";
import { Sample } from "./sample.tsx";
import { createState, lookOf, offered, withoutMetadata } from "./state.ts";
import { Tools } from "./tools.tsx";
import { Wall } from "./wall.tsx";

const STYLES = ["explore", "wall", "sample"].map((name) => `inspection/explore/${name}.css`),
  STEP = 1.4, // zoom of a button
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
  page.update(data);
  present(page, data.present);
}

export function unmount(parentElement: HTMLElement) {
  const page = pages.get(parentElement);
  if (!page) return;
  withdraw(page);
  page.close();
  pages.delete(parentElement);
}

// One mounted page: its state, and what draws it and is drawn.
export class Explore {
  readonly s: State;
  readonly camera = new Camera();
  readonly whole = div("lab map-lab");
  readonly overlay = el("div", { style: "display: contents" });
  readonly figure;
  readonly player: Player<Uint16Array<ArrayBuffer>> = new Player({
    between: (from, to, share) => {
      Object.assign(this.s.cloud.peek() ?? {}, { from, to, share });
      this.figure.invalidate();
    },
  });
  readonly thumbs = new ImageCache(() => this.s.arrived.value++);
  readonly tallied = signal<Record<string, ArrayLike<number>>>({}); // counts that are shown
  readonly ready: Promise<unknown>;
  tell: SetState = () => {};
  setState: SetState = () => {};
  bringImage = () => {}; // brings the image that Tab reaches into view, and focuses it
  // -- requests and timers
  address = ""; // folder of the files of the map
  tagId = "";
  font = ""; // of names on the map
  selection: string | null = null; // stored, "pending" or none
  seq = 0; // number of the last lasso
  reporting: ReturnType<typeof setTimeout> | undefined;
  dwelling: ReturnType<typeof setTimeout> | undefined;
  foreseen = 0; // frame that previews the lasso
  private counting: ReturnType<typeof setTimeout> | undefined;
  private opened: number; // number of views that were opened
  private readonly root: HTMLElement;
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
      this.sizes.observe(this.whole);
      for (const part of this.whole.querySelectorAll(".bar, .player")) this.sizes.observe(part);
    });
  }

  get data() {
    return this.s.data.peek();
  }

  get canvas() {
    return this.figure.canvas;
  }

  // Number of the frame that will paint, for films; 0: nothing is to be painted.
  get asked() {
    return this.figure.pending;
  }

  // Return the range of all points along both axes; while they move, the whole square.
  extent() {
    const cloud = this.s.cloud.peek();
    return !cloud || this.player.steps.length > 1 ? [1, 1] : cloud.extent;
  }

  // Receive data from Python.
  async update(data: MapData) {
    const { s } = this,
      fresh = data.points !== this.address,
      reopened = data.opened !== this.opened;
    let look = reopened ? data.look : lookOf(s.look);
    if (data.run !== this.data.run) {
      look = withoutMetadata(look);
      s.revealed.value = new Set();
    }
    this.opened = data.opened;
    this.address = data.points;
    batch(() => {
      if (fresh) s.cloud.value = null;
      s.data.value = data;
      this.show(look);
    });
    if (fresh) {
      const points = tryFetch<Points>(this, "points.bin"),
        [arrived] = await Promise.all([points, this.ready]);
      if (this.address !== data.points || !arrived) return;
      this.setPoints(arrived);
    }
    const cloud = s.cloud.peek();
    if (!cloud) return;
    if (reopened || fresh) this.takeOver(cloud);
    s.theme.value = applyTheme(this.root, this.whole);
    this.font = getComputedStyle(this.whole).fontFamily;
    await loadTags(this, data.tags);
    if (this.address !== data.points) return;
    this.mark(cloud);
    if (reopened || fresh) this.openLinked(cloud);
    this.canvas.dataset.own = String(data.own ?? "");
    await applySelection(this, data.seq, data.selection?.id ?? null);
    this.figure.invalidate();
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

  // Return the loops that can be filmed.
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

  placeCard() {
    placeCard(this);
  }

  // Focus the first link of the card, once it is drawn.
  focusCard() {
    requestAnimationFrame(() =>
      this.overlay.querySelector<HTMLElement>(".card a")?.focus({ preventScroll: true }),
    );
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

  // Show the counts in the legend; it need not follow every pixel of a lasso.
  count(counts: Record<string, ArrayLike<number>>, preview: boolean) {
    if (!preview) this.tallied.value = counts;
    else
      this.counting ??= setTimeout(() => {
        this.counting = undefined;
        this.tallied.value = this.s.counts.peek();
      }, COUNTING);
  }

  private show(look: Look) {
    for (const [name, value] of Object.entries(look))
      this.s.look[name as keyof Look].value = value as never;
  }

  private setPoints(arrived: Points) {
    const { s } = this,
      { xy } = arrived,
      { steps, menus } = this.data,
      cloud = new Cloud(arrived);
    this.tagId = "";
    this.selection = null;
    batch(() => {
      for (const part of [s.mask, s.preview, s.line, s.card, s.sample]) part.value = null;
      s.hovered.value = -1;
      s.columns.value = {};
      s.failed.value = {};
      s.contours.value = {};
      s.marked.value = [];
      s.tags.value = readTags(null, cloud.count);
      s.cloud.value = cloud;
    });
    this.player.update(steps, xy, (k) =>
      k === steps.length - 1 ? Promise.resolve(xy) : loadFrame(this, k, xy),
    );
    this.camera.look(0.5, 0.5, 1);
    this.makeRoom();
    for (const name of FILTERS) if (name in menus.colour) loadColumn(this, name);
  }

  // Apply the display settings of a link or a view, without those that this map does not offer.
  private takeOver({ classes }: Cloud) {
    const { s } = this,
      { menus, look } = this.data,
      [x, y, zoom] = look.window,
      labels = new Set(classes.map((c) => c.label));
    this.camera.look(x, y, zoom);
    batch(() => this.show(offered(lookOf(s.look), menus, labels)));
    for (const name of chosenMetadata(lookOf(s.look)).keys()) reveal(this, name);
  }

  // Mark the samples of a link, and bring the first of them into view.
  private mark(cloud: Cloud) {
    const rows = this.data.marks.map((index) => cloud.row(index)).filter((row) => row >= 0),
      { marked } = this.s;
    if (String(rows) === String(marked.peek())) return;
    marked.value = rows;
    if (!rows.length || !this.figure.view.width) return;
    const place = [cloud.x(rows[0]), cloud.y(rows[0])],
      { width, height, to } = this.figure.view,
      [x, y] = to(place);
    if (x < 0 || y < 0 || x > width || y > height) this.camera.look(place[0], place[1]);
  }

  private openLinked(cloud: Cloud) {
    const index = this.s.look.sample.peek(),
      row = index < 0 ? -1 : cloud.row(index),
      where = this.data.trained ? "the test split of this run" : "this embedding set";
    if (row >= 0) openSample(this, row);
    else if (index >= 0) this.s.notice.value = `The sample in the link is not in ${where}.`;
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
}

// Follow the state where no component does; return functions that end it.
function* follow(map: Explore) {
  const { s, figure } = map,
    { dataset } = map.canvas;
  // what the figure draws
  yield effect(() => {
    for (const part of [s.painted, s.states, s.counts, s.hovered, s.marked, s.card, s.line])
      void part.value;
    for (const part of [
      s.data,
      s.contours,
      s.arrived,
      s.look.names,
      s.look.images,
      s.look.contours,
    ])
      void part.value;
    figure.setTheme(s.theme.value);
    figure.invalidate();
  });
  yield effect(() => map.count(s.counts.value, s.preview.value !== null));
  // the column that colours the points
  yield effect(() => {
    const colour = s.look.colour.value;
    if (!s.cloud.value || colour === "class") return;
    if (isMetadata(colour)) reveal(map, colour);
    else loadColumn(map, colour);
  });
  yield effect(() => {
    const colour = s.look.colour.value,
      shown = s.painted.value?.colour;
    map.canvas.toggleAttribute("aria-busy", shown !== colour && !(colour in s.failed.value));
    if (shown) dataset.colour = shown;
  });
  yield effect(() => {
    const row = s.hovered.value;
    dataset.hovered = row < 0 ? "" : String(s.cloud.value?.indices[row]);
    dataset.tool = s.tool.value;
  });
  const fit = () => map.makeRoom();
  addEventListener("resize", fit);
  yield () => removeEventListener("resize", fit);
}

// Put an element that is not made by preact into the tree.
const Host = ({ node }: { node: Element }) => (
  <div style="display: contents" ref={(host) => host?.append(node)} />
);

const Page = ({ map }: { map: Explore }) => (
  <>
    <Tools map={map} />
    <div class="body">
      <Legend map={map} />
      <Host node={map.figure.root} />
      <Wall map={map} />
    </div>
    <Host node={map.player.root} />
    <Live text={map.s.spoken} />
    <Sample map={map} />
  </>
);

// What lies over the map.
const Overlay = ({ map }: { map: Explore }) => (
  <>
    <div class="notice" hidden={!map.s.notice.value}>
      {map.s.notice}
    </div>
    <div class="marks">{map.s.marks}</div>
    <div class="zoom">
      {(
        [
          ["+", "zoom in", () => map.figure.zoom(1 / STEP)],
          ["−", "zoom out", () => map.figure.zoom(STEP)],
          ["⤢", "whole map", () => showAll(map)],
        ] as const
      ).map(([text, label, act]) => (
        <button aria-label={label} title={label} onClick={act}>
          {text}
        </button>
      ))}
    </div>
    <Card map={map} />
  </>
);
