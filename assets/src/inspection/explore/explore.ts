// Explore page: points of a run on a plane, next to the images of the highlighted ones. Python
// sends the points once and reports the selection; everything that moves is drawn here, and only
// the corners of a lasso are sent.
import { asset } from "../../kit/address.ts";
import type {
  Class,
  Colouring,
  Contours,
  Facts,
  Frame,
  Keep,
  Lasso,
  Look,
  MapData,
  Metadata,
  Near,
  Points,
  SelectionBits,
  TagBits,
} from "./types.ts";
import type { Mounted, SetState, Theme } from "../../kit/types.ts";
import { applyTheme, drawing, el, save, setText, styled } from "../../kit/dom.ts";
import { present, withdraw } from "../../kit/present/present.ts";
import { decode } from "../../kit/socket.ts";
import { Camera } from "./camera.ts";
import { Card } from "./card.ts";
import { finest } from "../../kit/screen.ts";
import { Cloud, corners, packed, unpacked } from "./cloud.ts";
import {
  FILTERS,
  Facets,
  NOWHERE,
  chosenMetadata,
  filtered,
  isMetadata,
  numberOf,
} from "./facets.ts";
import { Painter as Flat } from "./flat.ts";
import { Painter as Gl } from "./gl.ts";
import { listen } from "./pointer.ts";
import { Keeping } from "./keeping.ts";
import { Legend, colours, valueText } from "./legend.ts";
import { ImageCache, paintOver } from "./overlay.ts";
import { Player } from "../../kit/frames.ts";
import { figure } from "./export.ts";
import { Sample } from "./sample.ts";
import { Tools } from "./tools.ts";
import { Wall } from "./wall.ts";

const DWELL = 125,
  FAINT = 0.14; // ms before an image is fetched; opacity of points that are not highlighted
const REST = 400, // ms until a gesture counts as ended
  BELOW = 96, // px below the map for the bar of the selection
  LOWEST_MAP = 400;
// Columns whose values also differ in shape, not only in colour; wrong ones are crosses.
const SHAPED: Partial<Record<Colouring, number>> = {
  class: 1,
  right: 2,
  hubness: 1,
  doubted: 1,
  split: 1,
  tags: 1,
};
const shapedBy = (colour: Colouring, facts: Facts | undefined) =>
  SHAPED[colour] ?? (isMetadata(colour) && facts?.names ? 1 : 0);
const maps: WeakMap<HTMLElement, MapView> = new WeakMap();
class Refused extends Error {}

export function render({
  data,
  parentElement,
  setStateValue,
  setTriggerValue,
}: Mounted<MapData> & { setTriggerValue: SetState }) {
  let map = maps.get(parentElement);
  if (!map) {
    map = new MapView(parentElement, data);
    maps.set(parentElement, map);
  }
  Object.assign(map, { tell: setTriggerValue, setState: setStateValue });
  map.update(data);
  present(map, data.present);
}

export function unmount(parentElement: HTMLElement) {
  const map = maps.get(parentElement);
  if (!map) return;
  withdraw(map);
  map.close();
  maps.delete(parentElement);
}

export class MapView {
  root: ParentNode;
  data: MapData;
  hovered: number;
  camera: Camera;
  tool: string;
  seq: number;
  look: Look;
  window: Look["window"] | null;
  opened: number;
  thumbs: ImageCache;
  whole: HTMLDivElement;
  points: HTMLCanvasElement;
  canvas: HTMLCanvasElement;
  live: HTMLDivElement;
  card: Card;
  legend: Legend;
  player: Player<Uint16Array<ArrayBuffer>>;
  wall: Wall;
  sample: Sample;
  keeping: Keeping;
  tools: Tools;
  wrong: (row: number) => boolean | undefined;
  notice: HTMLDivElement;
  marks: HTMLDivElement;
  frame: HTMLDivElement;
  body: HTMLDivElement;
  painter: Gl | Flat;
  observer: ResizeObserver;
  fit: () => void;
  ready: Promise<void>;
  address: string;
  bySize: (Class & { place: number })[];
  labels: Set<number>;
  keys: Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>;
  table: Uint8Array<ArrayBuffer>;
  states: Uint8Array<ArrayBuffer>;
  telling: number;
  sharpness: number;
  timer: number;
  asked: number;

  marked: number[] = [];
  line: number[][] | null = null; // corners of the lasso
  near: { row: number; neighbours: Near["neighbours"] } | null = null; // neighbours of the opened point
  facets: Facets = null as any; // undefined until the points are loaded
  counts: Record<string, ArrayLike<number>> = {};
  order: Int32Array<ArrayBuffer> = new Int32Array(); // order of the images
  preview: Uint8Array<ArrayBuffer> | null = null; // preview of the points inside the unfinished lasso
  lines: Map<number, Contours | null> = new Map(); // density contours by frame
  tagId = "";
  narrow: boolean | undefined;
  foreseen: number | undefined;
  counting: ReturnType<typeof setTimeout> | undefined;
  failed: Partial<Record<Colouring, string>> = {};
  cloud: Cloud = null as any; // undefined until its points are loaded
  mask: Uint8Array<ArrayBuffer>; // mask of the selection
  selection: string | null = null;
  ink: string;
  paper: string;
  font: string;
  theme: Theme;
  tell: SetState;
  setState: SetState;
  imagesDrawn = 0;
  namesMoved = false; // true if some name is displaced, with a dot in its point
  ratio: number | undefined;

  constructor(root: ParentNode, data: MapData) {
    this.root = root;
    this.data = data;
    this.hovered = -1;
    this.camera = new Camera();
    this.tool = "move";
    this.seq = 0;
    this.look = { ...data.look };
    this.window = data.look.window; // applied once the points are loaded
    this.opened = data.opened;
    this.thumbs = new ImageCache(() => this.draw());
    this.whole = el("div", { class: "lab map-lab" });
    this.points = el("canvas", { class: "points", "aria-hidden": "true" });
    this.canvas = el("canvas", {
      class: "map",
      tabindex: "0",
      role: "application",
      "aria-label":
        "map of the embeddings: arrow keys go from point to point, Enter opens one, Space selects it, + and - zoom, L draws a lasso",
    });
    this.live = el("div", { class: "hidden", "aria-live": "polite" });
    this.card = new Card(this);
    this.legend = new Legend(this);
    this.player = new Player(this);
    this.wall = new Wall(this);
    this.sample = new Sample(this);
    this.keeping = new Keeping(this);
    this.tools = new Tools(this);
    this.wrong = (row: number) => {
      const value = this.facets?.columns.right?.values[row];
      return value === undefined || value === NOWHERE ? undefined : value === 0;
    };
    this.notice = el("div", { class: "notice", hidden: true });
    this.marks = el("div", { class: "marks" });
    const button = (text: string, label: string, act: () => void) =>
      el("button", { "aria-label": label, title: label, onclick: act }, text);
    this.frame = el(
      "div",
      { class: "frame" },
      this.points,
      this.canvas,
      this.notice,
      this.marks,
      el(
        "div",
        { class: "zoom" },
        button("+", "zoom in", () => this.zoom(1.4)),
        button("−", "zoom out", () => this.zoom(1 / 1.4)),
        button("⤢", "whole map", () => {
          this.camera.showAll();
          this.onCameraMove();
        }),
      ),
      this.card.root,
    );
    this.body = el("div", { class: "body" }, this.legend.root, this.frame, this.wall.root);
    this.whole.append(this.tools.root, this.body, this.player.root, this.live, this.sample.dialog);
    this.painter = this.newPainter();
    this.points.addEventListener("webglcontextlost", (e) => {
      e.preventDefault();
      this.painter.onContextLost();
    });
    this.points.addEventListener("webglcontextrestored", () => {
      this.painter.build();
      this.draw();
    });
    listen(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.fit = () => this.makeRoom();
    addEventListener("resize", this.fit);
    this.ready = styled(
      root,
      ...[
        "theme/layout.css",
        ...["explore", "wall", "sample"].map((name) => `inspection/explore/${name}.css`),
      ].map(asset),
    ).then(() => {
      root.append(this.whole);
      this.observer.observe(this.frame);
    });
  }

  newPainter() {
    try {
      return new Gl(this.points);
    } catch {
      this.showMessage("This browser has no WebGL2, so the map is slower.");
      return new Flat(this.points);
    }
  }

  showMessage(text: string) {
    setText(this.notice, text);
    this.notice.hidden = !text;
  }

  close() {
    this.observer.disconnect();
    this.wall.close();
    removeEventListener("resize", this.fit);
    this.player.pause();
    clearTimeout(this.timer);
    clearTimeout(this.telling);
  }

  take(name: string) {
    this.tool = name;
    for (const button of this.tools.tools)
      button.setAttribute("aria-pressed", String(button.dataset.tool === name));
    this.cursor();
  }

  cursor() {
    this.canvas.style.cursor =
      this.tool === "lasso" ? "crosshair" : this.hovered >= 0 ? "pointer" : "grab";
  }

  // ---- messages from Python
  async update(data: MapData) {
    const fresh = data.points !== this.address;
    if (data.run !== this.data.run) this.forgetMetadata(); // columns of another run
    this.data = data;
    this.tools.offer();
    this.tools.csv.href = `${data.points}map.csv`;
    this.keeping.show();
    const reopened = data.opened !== this.opened;
    if (reopened) {
      this.opened = data.opened;
      this.look = { ...data.look };
      this.window = data.look.window;
    }
    if (fresh) {
      this.address = data.points;
      this.cloud = null as any;
      const arriving = this.tryFetch("points.bin") as Promise<Points | null>,
        [arrived] = await Promise.all([arriving, this.ready]);
      if (this.address !== data.points || !arrived) return;
      this.setPoints(arrived);
    }
    if (!this.cloud) return;
    this.makeRoom();
    if (reopened || fresh) this.takeOver();
    this.onTheme();
    await this.learnTags();
    const rows = this.data.marks.map((index) => this.cloud.row(index)).filter((row) => row >= 0);
    if (String(rows) !== String(this.marked)) {
      this.marked = rows;
      this.bring(rows[0]);
    }
    if (fresh || reopened) this.openSample();
    this.canvas.dataset.own = String(this.data.own ?? "");
    await this.applySelection(this.data.selection);
    this.draw();
  }

  // Return a file of this map. Throws an error with a message for the visitor if it cannot be
  // loaded.
  async fetchFile<A extends object>(name: string): Promise<A> {
    const answer = await fetch(`${this.address}${name}`).catch(() => null);
    if (answer?.ok) return decode(await answer.arrayBuffer());
    throw new Refused(
      answer?.status === 409
        ? await answer.text()
        : "Part of the map could not be loaded. Check that the server is running, then reload the page.",
    );
  }

  // Return a file of this map; on failure show the message on the map and return null.
  async tryFetch<A extends object>(name: string): Promise<A | null> {
    try {
      return await this.fetchFile(name);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.showMessage(error.message);
      return null;
    }
  }

  setPoints(arrived: Points) {
    this.cloud = new Cloud(arrived);
    this.facets = new Facets(this.cloud);
    this.lines.clear();
    this.wall.clear();
    this.keys = null as any; // keys of the previous map do not fit
    this.states = new Uint8Array(this.cloud.count);
    this.tagId = "";
    Object.assign(this, {
      hovered: -1,
      near: null,
      failed: {},
      marked: [],
      line: null,
      preview: null,
      mask: new Uint8Array(this.cloud.count),
      selection: null,
    });
    this.bySize = this.cloud.classes
      .map((c, place) => ({ ...c, place }))
      .sort((a, b) => b.count - a.count);
    this.labels = new Set(this.cloud.classes.map((c) => c.label));
    this.facets.tagged(null);
    const { xy } = arrived,
      last = this.data.steps.length - 1;
    this.player.update(this.data.steps, xy, (k) =>
      k === last
        ? Promise.resolve(xy)
        : this.tryFetch(`frame-${k}.bin`).then((frame) => (frame as Frame | null)?.xy ?? xy),
    );
    this.camera.showAll();
    this.resize();
    this.reorder();
    for (const name of FILTERS) if (name in this.data.menus.colour) this.column(name);
  }

  // Return a column of the points, fetched once; null if it is not available.
  async column(name: Exclude<Colouring, "class">): Promise<Facts | null> {
    const { facets } = this;
    if (facets.columns[name] || name === "tags") return facets.columns[name] ?? null;
    try {
      facets.columns[name] = await this.fetchFile(`${name}.bin`);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.failed[name] = error.message;
      return null;
    }
    if (facets !== this.facets) return null;
    if (this.look.sort === name) this.reorder();
    if (name === this.look.colour) this.recolour();
    else this.updateVisibility();
    return facets.columns[name] ?? null;
  }

  async learnTags() {
    const { facets } = this,
      { tags } = this.data;
    if (tags === this.tagId) return;
    this.tagId = tags;
    const found: TagBits | null = tags ? await this.tryFetch(`tags-${tags}.bin`) : null;
    if (facets !== this.facets || tags !== this.tagId) return;
    facets.tagged(found);
    this.sample.showTags();
    if (this.look.colour === "tags") this.recolour();
    else this.updateVisibility();
  }

  // Apply the display settings of a link or a view; ignore what this run lacks.
  takeOver() {
    const { camera } = this;
    this.keepWhatIsOffered();
    if (this.window) {
      const [x, y, zoom] = this.window;
      camera.showAll();
      camera.closer(zoom);
      camera.look(x, y);
      this.window = null;
    }
    this.tools.show();
    this.reorder();
    this.recolour();
  }

  forgetMetadata() {
    this.look.meta = [];
    if (isMetadata(this.look.colour)) this.look.colour = "class";
    this.legend.opened.clear();
  }

  // Drop the settings that this map does not offer, such as classes without labels.
  keepWhatIsOffered() {
    const { look } = this,
      { colour, sort } = this.data.menus,
      first = (menu: object) => Object.keys(menu)[0];
    if (!(look.colour in colour)) look.colour = first(colour) as Colouring;
    if (!(look.sort in sort)) look.sort = first(sort) as Look["sort"];
    look.classes = look.classes.filter((label) => this.labels.has(label));
    for (const name of FILTERS) if (!(name in colour)) look[name] = [];
    look.meta = look.meta.filter((text) => `meta-${text.split("-")[0]}` in colour);
    for (const name of chosenMetadata(look).keys()) this.legend.reveal(name);
  }

  openSample() {
    const row = this.look.sample < 0 ? -1 : this.cloud.row(this.look.sample);
    if (row >= 0) this.sample.open(row);
    else if (this.look.sample >= 0)
      this.showMessage(
        `The sample in the link is not in ${this.data.trained ? "the test split of this run" : "this embedding set"}.`,
      );
  }

  keep(message: Keep) {
    if ("open" in message) clearTimeout(this.telling); // drop the pending report of older settings
    this.tell("keep", "view" in message ? { ...message, look: this.lookNow() } : message);
  }

  // Limit the height to the browser window below the header, so that map and images fit on one
  // screen.
  makeRoom() {
    const scrolled = document.querySelector('[data-testid="stMain"]')?.scrollTop ?? 0,
      top = this.body.getBoundingClientRect().top + scrolled,
      player = this.player.root.hidden ? 0 : this.player.root.offsetHeight + 8;
    if (!top) return;
    const narrow = this.whole.clientWidth <= 920; // as in explore.css
    if (narrow !== this.narrow) {
      this.narrow = narrow;
      this.legend.root.open = !narrow;
    }
    this.body.style.setProperty(
      "--room",
      `${Math.max(LOWEST_MAP, Math.round(innerHeight - top - player - BELOW))}px`,
    );
  }

  onTheme() {
    const theme = applyTheme(this.root, this.whole),
      style = getComputedStyle(this.frame);
    if (theme === this.theme) return;
    Object.assign(this, {
      theme,
      ink: style.color,
      paper: style.backgroundColor,
      font: style.fontFamily,
    });
    this.recolour();
  }

  // ---- colours and highlighting
  async recolour() {
    const { colour } = this.look;
    if (!this.cloud || !this.theme) return;
    let facts = null;
    if (isMetadata(colour)) this.legend.reveal(colour);
    if (colour !== "class") {
      facts = this.facets.columns[colour] ?? null;
      if (!facts) {
        this.legend.show();
        this.canvas.setAttribute("aria-busy", "true");
        facts = await this.column(colour);
        this.canvas.removeAttribute("aria-busy");
        if (!facts) this.legend.show();
        if (!facts || this.look.colour !== colour) return;
      }
    }
    this.keys = facts ? facts.values : this.cloud.group;
    this.table = colours(
      colour,
      this.cloud.classes,
      this.theme,
      facts?.names?.length,
      facts?.colours,
    );
    this.canvas.dataset.colour = colour;
    this.updateVisibility();
  }

  matchesFilter(label: number) {
    return !this.look.classes.length || this.look.classes.includes(label);
  }
  // Return true if any point of class `c` is highlighted.
  isVisible(c: MapView["bySize"][number]) {
    return (this.counts.classes?.[c.place] ?? 1) > 0 && this.matchesFilter(c.label);
  }
  // Return the name of the class of a sample, or its number if there are no labels.
  nameOf(row: number) {
    if (!this.data.labelled) return `sample ${this.cloud.indices[row]}`;
    return this.cloud.classes[this.cloud.group[row]].name;
  }
  titleOf(row: number) {
    const name = this.nameOf(row);
    return this.data.labelled ? `class ${name}, sample ${this.cloud.indices[row]}` : name;
  }

  highlight(label: number | null) {
    const { classes } = this.look;
    this.look.classes =
      label === null
        ? []
        : classes.includes(label)
          ? classes.filter((c) => c !== label)
          : [...classes, label];
    this.updateVisibility();
    this.tellLook();
  }

  // Toggle a value of a column, or a tag.
  filter(name: (typeof FILTERS)[number] | "tags", value: number | string) {
    const kept = this.look[name] as (number | string)[],
      chosen = kept.includes(value) ? kept.filter((one) => one !== value) : [...kept, value];
    Object.assign(this.look, { [name]: chosen });
    this.updateVisibility();
    this.tellLook();
  }

  // Toggle a category of a metadata column.
  filterCategory(name: Metadata, code: number) {
    const text = `${numberOf(name)}-${code}`,
      { meta } = this.look;
    this.look.meta = meta.includes(text) ? meta.filter((one) => one !== text) : [...meta, text];
    this.updateVisibility();
    this.tellLook();
  }

  // Highlight an interval of the scale of a metadata column; null for all values.
  filterInterval(name: Metadata, interval: [number, number] | null) {
    const number = String(numberOf(name)),
      others = this.look.meta.filter((text) => text.split("-")[0] !== number);
    this.look.meta = interval ? [...others, [number, ...interval].join("-")] : others;
    this.updateVisibility();
    this.tellLook();
  }

  clearFilters() {
    Object.assign(this.look, { classes: [], tags: [], meta: [] });
    for (const name of FILTERS) this.look[name] = [];
    this.updateVisibility();
    this.tellLook();
  }

  reorder() {
    this.order = this.facets.sortedRows(this.look.sort);
    if (this.keys) this.updateVisibility();
  }

  // Preview the selection of the unfinished lasso.
  foresee(add: boolean) {
    this.foreseen ??= requestAnimationFrame(() => {
      this.foreseen = undefined;
      const polygon = this.line && this.line.length > 2 ? corners(this.line) : new Uint16Array(),
        mask = polygon.length < 6 ? null : this.cloud.maskInside(polygon);
      const all = mask && add && this.selection ? mask.map((bit, i) => bit | this.mask[i]) : mask;
      this.preview = all?.includes(1) ? all : null;
      this.updateVisibility();
    });
  }

  updateVisibility() {
    const { cloud, facets } = this;
    if (!this.keys) return;
    const mask = this.preview ?? this.mask,
      some = this.preview !== null || this.selection !== null,
      fails = facets.fails(this.look);
    this.states = new Uint8Array(cloud.count);
    for (let i = 0; i < cloud.count; i++)
      this.states[i] = (!fails[i] && (!some || mask[i]) ? 1 : 0) | (mask[i] << 1);
    this.counts = facets.counts(fails, some ? mask : null);
    const shown = this.order.filter((row) => this.states[row] & 1);
    this.tools.clear.hidden = !filtered(this.look);
    this.wall.show(
      shown,
      `${shown.length.toLocaleString("en")} of ${cloud.count.toLocaleString("en")} images${this.preview ? " in the lasso" : some ? " selected" : ""}`,
    );
    this.draw();
    // the legend need not follow every pixel of a lasso
    if (!this.preview) this.legend.show();
    else
      this.counting ??= setTimeout(() => {
        this.counting = undefined;
        this.legend.show();
      }, 100);
  }

  edge(row: number) {
    // frame of an image: the colour of its point, dashed if the nearest neighbour is wrong
    const k = 4 * (this.keys[row] & 255),
      wrong = this.look.colour === "right" && this.keys[row] === 0;
    return {
      colour: `rgb(${this.table[k]}, ${this.table[k + 1]}, ${this.table[k + 2]})`,
      dashed: wrong,
    };
  }

  tooltip(row: number) {
    const { colour } = this.look,
      facts = colour === "class" ? undefined : this.facets.columns[colour],
      value = facts?.values[row];
    if (!facts || value === undefined || value === NOWHERE) return "";
    if (colour === "right") return value ? " · ✓ neighbour right" : " · ✗ neighbour wrong";
    if (facts.names) return ` · ${facts.names[value]}`;
    if (facts.range) return ` · ${this.data.menus.colour[colour]} ${valueText(facts, value)}`;
    return colour === "purity" ? ` · purity ${Math.round((100 * value) / 254)} %` : "";
  }

  // Return the values of a sample in all columns, without those that most samples share.
  describe(row: number) {
    const { hubness, doubted, split } = this.facets.columns,
      words = [];
    if (hubness && hubness.values[row] !== NOWHERE)
      words.push(`retrieved by ${hubness.fine?.[row]} others`);
    if (doubted?.values[row] === 1) words.push("label doubted (see its neighbours)");
    if (split?.names && split.values[row] === 1) words.push(split.names[1]);
    return words;
  }

  tellLook() {
    // report after a pause, so that the link includes it
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.flush(), REST);
  }

  flush() {
    clearTimeout(this.telling);
    this.setState("look", this.lookNow());
  }

  lookNow() {
    const { camera, look } = this,
      window = [camera.x, camera.y, camera.zoom].map((v) => Number(v.toPrecision(5)));
    return { ...look, classes: look.classes.slice(0, 50), window };
  }

  // ---- selection
  enclose(add: boolean) {
    const frame = this.player.settle(),
      polygon = this.line && this.line.length > 2 ? corners(this.line) : new Uint16Array();
    this.line = null;
    this.preview = null;
    if (this.foreseen) cancelAnimationFrame(this.foreseen);
    this.foreseen = undefined;
    if (polygon.length < 6) return this.updateVisibility();
    this.ask({ polygon: packed(polygon), frame, add });
    const mask = this.cloud.maskInside(polygon);
    this.choose(add && this.selection ? mask.map((bit, i) => bit | this.mask[i]) : mask);
  }

  toggle(row: number) {
    if (row < 0) return;
    const mask = this.selection ? this.mask.slice() : new Uint8Array(this.cloud.count);
    mask[row] ^= 1;
    this.ask({ toggle: this.cloud.indices[row] });
    this.choose(mask);
  }

  ask(message: Lasso) {
    this.tell("lasso", { ...message, seq: ++this.seq });
  }

  // Draw the browser's result at once; Python computes the same selection and stores it.
  choose(mask: Uint8Array<ArrayBuffer>) {
    const count = mask.reduce((sum, bit) => sum + bit, 0);
    if (count) {
      this.mask = mask;
      this.selection = "pending";
    } else {
      this.mask.fill(0);
      this.selection = null;
    }
    this.showSelectionCount(count);
    // update the number before 60,000 points are drawn
    requestAnimationFrame(() => this.updateVisibility());
  }

  showSelectionCount(count: number) {
    setText(this.tools.count, count ? `${count.toLocaleString("en")} selected` : "");
    this.tools.count.dataset.count = String(count);
  }

  async applySelection(selection: { id: string } | null) {
    const id = selection?.id ?? null;
    if (id === this.selection || (this.selection === "pending" && this.data.seq < this.seq)) return;
    this.selection = id;
    const found: SelectionBits | null = id ? await this.tryFetch(`selection-${id}.bin`) : null;
    if (this.selection !== id) return;
    this.mask = found ? unpacked(found.bits, this.cloud.count) : new Uint8Array(this.cloud.count);
    this.showSelectionCount(this.mask.reduce((sum, bit) => sum + bit, 0));
    this.canvas.dataset.selection = id ?? "";
    this.updateVisibility();
  }

  // ---- geometry
  resize() {
    const { width } = this.frame.getBoundingClientRect(),
      ratio = this.ratio ?? finest(this.canvas);
    if (!width || !this.cloud) return;
    const extent = this.cloud.extent();
    this.camera.frame(
      this.frame.clientWidth,
      this.frame.clientHeight,
      this.player.steps.length > 1 ? [{ size: 1 }, { size: 1 }] : extent,
    );
    for (const canvas of [this.points, this.canvas]) {
      canvas.width = Math.round(this.camera.width * ratio);
      canvas.height = Math.round(this.camera.height * ratio);
    }
    this.sharpness = ratio;
    this.draw();
  }

  radius() {
    const alone = Math.max(1.7, (0.16 * this.camera.side) / Math.sqrt(this.cloud.count)),
      marks = this.look.colour === "right" ? 1.25 : 1; // crosses need space
    return Math.min(7, marks * alone * this.camera.zoom ** 0.4);
  }
  zoom(factor: number) {
    this.camera.closer(factor);
    this.onCameraMove();
  }
  onCameraMove() {
    this.tellLook();
    this.hover(-1);
    if (this.card.pinned >= 0) this.card.place(this.card.pinned);
    this.draw();
  }

  between(from: Uint16Array<ArrayBuffer>, to: Uint16Array<ArrayBuffer>, share: number) {
    // between two frames of the training run
    Object.assign(this.cloud, { from, to, share });
    if (this.card.pinned >= 0) this.card.place(this.card.pinned);
    this.draw();
  }

  bring(row: number | undefined) {
    // bring the points named by a link into view
    if (row === undefined) return;
    const [x, y] = this.camera.at(this.cloud, row);
    if (x < 0 || y < 0 || x > this.camera.width || y > this.camera.height)
      this.camera.look(this.cloud.x(row), this.cloud.y(row));
  }

  pick(px: number, py: number, reach: number) {
    if (!this.cloud) return -1;
    const [x, y] = this.camera.place(px, py);
    return this.cloud.nearest(x, y, reach / this.camera.scale, (i) => this.states[i] & 1);
  }

  step(arrow: number[]) {
    if (!this.cloud) return;
    const { camera, cloud } = this,
      from =
        this.hovered >= 0 ? [cloud.x(this.hovered), cloud.y(this.hovered)] : [camera.x, camera.y];
    const row = cloud.nearestInDirection(
      from,
      arrow,
      camera.window(),
      (i) => this.states[i] & 1,
      this.hovered,
    );
    if (row >= 0) this.hover(row);
  }

  // ---- one point
  // onMap: true if the pointer is on the map, false if on the images
  hover(row: number, onMap: boolean = true) {
    if (row === this.hovered) return;
    this.hovered = row;
    this.canvas.dataset.hovered = row < 0 ? "" : String(this.cloud.indices[row]);
    this.cursor();
    this.wall.light(row);
    clearTimeout(this.timer);
    if (!onMap) return this.draw();
    if (this.card.pinned < 0) {
      const open = !this.card.root.hidden;
      if (row < 0) this.card.hide();
      else
        this.timer = setTimeout(
          () => {
            this.card.show(row);
            this.announce(row);
          },
          open ? DWELL / 2 : DWELL,
        );
    } else if (row >= 0) this.timer = setTimeout(() => this.announce(row), DWELL);
    this.draw();
  }

  announce(row: number) {
    setText(this.live, `${this.titleOf(row)}${this.tooltip(row)}`);
  }

  async open(row: number, keyboard = false) {
    if (row < 0) return this.close_card();
    clearTimeout(this.timer);
    const address = this.address;
    this.near = null;
    this.card.show(row, true);
    this.announce(row);
    if (keyboard)
      (this.card.root.querySelector("a") as HTMLElement | null)?.focus({
        preventScroll: true,
      });
    this.draw();
    const found: Near | null = await this.tryFetch(`near-${row}.bin`);
    if (!found || this.card.pinned !== row || this.address !== address) return;
    this.near = { row, neighbours: found.neighbours };
    this.card.tell(found);
    this.draw();
  }

  close_card() {
    this.card.hide();
    this.near = null;
    this.draw();
  }

  // Return density contours of the current frame; null until they are loaded.
  contours() {
    const last = this.player.steps.length - 1,
      k = last > 0 ? Math.round(this.player.at) : 0;
    if (this.cloud.share) return null; // between two frames
    if (!this.lines.has(k)) {
      this.lines.set(k, null);
      this.tryFetch(`contours-${k}.bin`).then((found) => {
        this.lines.set(k, found as Contours | null);
        this.draw();
      });
    }
    return this.lines.get(k) ?? null;
  }

  // ---- painting
  draw() {
    if (!this.cloud || !this.camera.width || !this.keys || this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.paint();
    });
  }

  paint() {
    const { camera, cloud, sharpness } = this;
    this.painter.paint(cloud, {
      keys: this.keys,
      states: this.states,
      colours: this.table,
      shaped: shapedBy(
        this.look.colour,
        this.look.colour === "class" ? undefined : this.facets.columns[this.look.colour],
      ),
      ...camera.clip(),
      window: camera.window(),
      radius: this.radius() * sharpness,
      faint: FAINT,
      paper: rgb(this.paper),
      ink: rgb(this.ink),
    });
    const ctx = drawing(this.canvas);
    ctx.setTransform(sharpness, 0, 0, sharpness, 0, 0);
    paintOver(ctx, this);
    setText(this.marks, this.describeMarks());
    this.canvas.dataset.images = String(this.imagesDrawn);
    this.canvas.dataset.painted = String(Number(this.canvas.dataset.painted ?? 0) + 1);
    this.canvas.dataset.count = String(cloud.count);
  }

  // Describe the marks that are currently drawn.
  describeMarks() {
    const wrong = this.imagesDrawn > 0 && this.look.colour === "right";
    return [
      this.namesMoved && "point with a dot: its name is next to it",
      this.near &&
        (this.data.labelled
          ? "green line: same class, dashed orange: another class"
          : "blue line: nearest neighbours"),
      wrong && "green frame: nearest neighbour right, dashed orange: wrong",
      this.marked.length > 0 && "orange ring: sample of the link",
    ]
      .filter(Boolean)
      .join(" · ");
  }

  get motions() {
    const { player } = this,
      { at, steps } = player;
    return steps.length < 2
      ? []
      : [
          {
            title: "training, forward and back",
            pose: (share: number) => {
              player.pause();
              return player.go((steps.length - 1) * (1 - Math.abs(1 - 2 * share)));
            },
            end: () => player.go(at),
          },
        ];
  }

  // ---- export
  async png() {
    const shown = this.hovered;
    this.hovered = -1;
    this.ratio = 2;
    this.resize();
    this.paint();
    const canvas = figure(this);
    delete this.ratio;
    this.hovered = shown;
    this.resize();
    canvas.toBlob((blob) => save(`map-${this.data.run}.png`, blob));
  }
}

const rgb = (css: string) => (css.match(/[\d.]+/g) ?? []).slice(0, 3).map((v) => Number(v) / 255);
