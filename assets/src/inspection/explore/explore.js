// Explore page: points of a run on a plane, next to the images of the highlighted ones. Python
// sends the points once and reports the selection; everything that moves is drawn here, and only
// the corners of a lasso are sent.
/** @import { Class, Colouring, Contours, Facts, Frame, Keep, Lasso, Look, MapData, Metadata, Near, Points, SelectionBits, TagBits } from "./types.js" */
/** @import { Mounted, SetState, Theme } from "../../kit/types.js" */
import { applyTheme, drawing, el, save, setText, styled } from "../../kit/dom.js";
import { present, withdraw } from "../../kit/present.js";
import { decode } from "../../kit/socket.js";
import { Camera } from "./camera.js";
import { Card } from "./card.js";
import { finest } from "../../kit/screen.js";
import { Cloud, corners, packed, unpacked } from "./cloud.js";
import {
  FILTERS,
  Facets,
  NOWHERE,
  chosenMetadata,
  filtered,
  isMetadata,
  numberOf,
} from "./facets.js";
import { Painter as Flat } from "./flat.js";
import { Painter as Gl } from "./gl.js";
import { listen } from "./pointer.js";
import { Keeping } from "./keeping.js";
import { Legend, colours, valueText } from "./legend.js";
import { ImageCache, paintOver } from "./overlay.js";
import { Player } from "../../kit/frames.js";
import { figure } from "./export.js";
import { Sample } from "./sample.js";
import { Tools } from "./tools.js";
import { Wall } from "./wall.js";

const DWELL = 125,
  FAINT = 0.14; // ms before an image is fetched; opacity of points that are not highlighted
const REST = 400, // ms until a gesture counts as ended
  BELOW = 96, // px below the map for the bar of the selection
  LOWEST_MAP = 400;
// Columns whose values also differ in shape, not only in colour; wrong ones are crosses.
/** @type {Partial<Record<Colouring, number>>} */
const SHAPED = { class: 1, right: 2, hubness: 1, doubted: 1, split: 1, tags: 1 };
/**
 * @param {Colouring} colour
 * @param {Facts | undefined} facts
 */
const shapedBy = (colour, facts) => SHAPED[colour] ?? (isMetadata(colour) && facts?.names ? 1 : 0);
/** @param {string} name */
const localUrl = (name) => new URL(name, import.meta.url).href;
/** @type {WeakMap<HTMLElement, MapView>} */
const maps = new WeakMap();
class Refused extends Error {}

/** @param {Mounted<MapData> & { setTriggerValue: SetState }} given */
export function render({ data, parentElement, setStateValue, setTriggerValue }) {
  let map = maps.get(parentElement);
  if (!map) {
    map = new MapView(parentElement, data);
    maps.set(parentElement, map);
  }
  Object.assign(map, { tell: setTriggerValue, setState: setStateValue });
  map.update(data);
  present(map, data.present);
}

/** @param {HTMLElement} parentElement */
export function unmount(parentElement) {
  const map = maps.get(parentElement);
  if (!map) return;
  withdraw(map);
  map.close();
  maps.delete(parentElement);
}

export class MapView {
  /** @type {string} */
  address;
  /** @type {(Class & { place: number })[]} */
  bySize;
  /** @type {Set<number>} */
  labels;
  /** @type {Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>} */
  keys;
  /** @type {Uint8Array<ArrayBuffer>} */
  table;
  /** @type {Uint8Array<ArrayBuffer>} */
  states;
  /** @type {number} */
  telling;
  /** @type {number} */
  sharpness;
  /** @type {number} */
  timer;
  /** @type {number} */
  asked;

  /** @type {number[]} */
  marked = [];
  /** @type {number[][] | null} */
  line = null; // corners of the lasso
  /** @type {{ row: number, neighbours: Near["neighbours"] } | null} */
  near = null; // neighbours of the opened point
  /** @type {Facets} */
  facets = /** @type {any} */ (null); // undefined until the points are loaded
  /** @type {Record<string, ArrayLike<number>>} */
  counts = {};
  /** @type {Int32Array<ArrayBuffer>} */
  order = new Int32Array(); // order of the images
  /** @type {Uint8Array<ArrayBuffer> | null} */
  preview = null; // preview of the points inside the unfinished lasso
  /** @type {Map<number, Contours | null>} */
  lines = new Map(); // density contours by frame
  tagId = "";
  /** @type {boolean | undefined} */
  narrow;
  /** @type {number | undefined} */
  foreseen;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  counting;
  /** @type {Partial<Record<Colouring, string>>} */
  failed = {};
  /** @type {Cloud} */
  cloud = /** @type {any} */ (null); // undefined until its points are loaded
  /** @type {Uint8Array<ArrayBuffer>} */
  mask; // mask of the selection
  /** @type {string | null} */
  selection = null;
  /** @type {string} */
  ink;
  /** @type {string} */
  paper;
  /** @type {string} */
  font;
  /** @type {Theme} */
  theme;
  /** @type {SetState} */
  tell;
  /** @type {SetState} */
  setState;
  imagesDrawn = 0;
  namesMoved = false; // true if some name is displaced, with a dot in its point
  /** @type {number | undefined} */
  ratio;

  /**
   * @param {ParentNode} root
   * @param {MapData} data
   */
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.hovered = -1;
    this.camera = new Camera();
    this.tool = "move";
    this.seq = 0;
    /** @type {Look} */
    this.look = { ...data.look };
    /** @type {Look["window"] | null} */
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
    this.wrong = (/** @type {number} */ row) => {
      const value = this.facets?.columns.right?.values[row];
      return value === undefined || value === NOWHERE ? undefined : value === 0;
    };
    this.notice = el("div", { class: "notice", hidden: true });
    this.marks = el("div", { class: "marks" });
    const button = (
      /** @type {string} */ text,
      /** @type {string} */ label,
      /** @type {() => void} */ act,
    ) => el("button", { "aria-label": label, title: label, onclick: act }, text);
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
      ...["../../kit/shared.css", "explore.css", "wall.css", "sample.css"].map(localUrl),
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

  /** @param {string} text */
  showMessage(text) {
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

  /** @param {string} name */
  take(name) {
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
  /** @param {MapData} data */
  async update(data) {
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
      this.cloud = /** @type {any} */ (null);
      const arriving = /** @type {Promise<Points | null>} */ (this.tryFetch("points.bin")),
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
  /**
   * @template {object} A
   * @param {string} name
   * @returns {Promise<A>}
   */
  async fetchFile(name) {
    const answer = await fetch(`${this.address}${name}`).catch(() => null);
    if (answer?.ok) return decode(await answer.arrayBuffer());
    throw new Refused(
      answer?.status === 409
        ? await answer.text()
        : "Part of the map could not be loaded. Check that the server is running, then reload the page.",
    );
  }

  // Return a file of this map; on failure show the message on the map and return null.
  /**
   * @template {object} A
   * @param {string} name
   * @returns {Promise<A | null>}
   */
  async tryFetch(name) {
    try {
      return await this.fetchFile(name);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.showMessage(error.message);
      return null;
    }
  }

  /** @param {Points} arrived */
  setPoints(arrived) {
    this.cloud = new Cloud(arrived);
    this.facets = new Facets(this.cloud);
    this.lines.clear();
    this.wall.clear();
    this.keys = /** @type {any} */ (null); // keys of the previous map do not fit
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
        : this.tryFetch(`frame-${k}.bin`).then(
            (frame) => /** @type {Frame | null} */ (frame)?.xy ?? xy,
          ),
    );
    this.camera.showAll();
    this.resize();
    this.reorder();
    for (const name of FILTERS) if (name in this.data.menus.colour) this.column(name);
  }

  // Return a column of the points, fetched once; null if it is not available.
  /**
   * @param {Exclude<Colouring, "class">} name
   * @returns {Promise<Facts | null>}
   */
  async column(name) {
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
    /** @type {TagBits | null} */
    const found = tags ? await this.tryFetch(`tags-${tags}.bin`) : null;
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
      first = (/** @type {object} */ menu) => Object.keys(menu)[0];
    if (!(look.colour in colour)) look.colour = /** @type {Colouring} */ (first(colour));
    if (!(look.sort in sort)) look.sort = /** @type {Look["sort"]} */ (first(sort));
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

  /** @param {Keep} message */
  keep(message) {
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

  /** @param {number} label */
  matchesFilter(label) {
    return !this.look.classes.length || this.look.classes.includes(label);
  }
  // Return true if any point of class `c` is highlighted.
  /** @param {MapView["bySize"][number]} c */
  isVisible(c) {
    return (this.counts.classes?.[c.place] ?? 1) > 0 && this.matchesFilter(c.label);
  }
  // Return the name of the class of a sample, or its number if there are no labels.
  /** @param {number} row */
  nameOf(row) {
    if (!this.data.labelled) return `sample ${this.cloud.indices[row]}`;
    return this.cloud.classes[this.cloud.group[row]].name;
  }
  /** @param {number} row */
  titleOf(row) {
    const name = this.nameOf(row);
    return this.data.labelled ? `class ${name}, sample ${this.cloud.indices[row]}` : name;
  }

  /** @param {number | null} label */
  highlight(label) {
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
  /**
   * @param {typeof FILTERS[number] | "tags"} name
   * @param {number | string} value
   */
  filter(name, value) {
    const kept = /** @type {(number | string)[]} */ (this.look[name]),
      chosen = kept.includes(value) ? kept.filter((one) => one !== value) : [...kept, value];
    Object.assign(this.look, { [name]: chosen });
    this.updateVisibility();
    this.tellLook();
  }

  // Toggle a category of a metadata column.
  /**
   * @param {Metadata} name
   * @param {number} code
   */
  filterCategory(name, code) {
    const text = `${numberOf(name)}-${code}`,
      { meta } = this.look;
    this.look.meta = meta.includes(text) ? meta.filter((one) => one !== text) : [...meta, text];
    this.updateVisibility();
    this.tellLook();
  }

  // Highlight an interval of the scale of a metadata column; null for all values.
  /**
   * @param {Metadata} name
   * @param {[number, number] | null} interval
   */
  filterInterval(name, interval) {
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
  /** @param {boolean} add */
  foresee(add) {
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

  /** @param {number} row */
  edge(row) {
    // frame of an image: the colour of its point, dashed if the nearest neighbour is wrong
    const k = 4 * (this.keys[row] & 255),
      wrong = this.look.colour === "right" && this.keys[row] === 0;
    return {
      colour: `rgb(${this.table[k]}, ${this.table[k + 1]}, ${this.table[k + 2]})`,
      dashed: wrong,
    };
  }

  /** @param {number} row */
  tooltip(row) {
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
  /** @param {number} row */
  describe(row) {
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
  /** @param {boolean} add */
  enclose(add) {
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

  /** @param {number} row */
  toggle(row) {
    if (row < 0) return;
    const mask = this.selection ? this.mask.slice() : new Uint8Array(this.cloud.count);
    mask[row] ^= 1;
    this.ask({ toggle: this.cloud.indices[row] });
    this.choose(mask);
  }

  /** @param {Lasso} message */
  ask(message) {
    this.tell("lasso", { ...message, seq: ++this.seq });
  }

  // Draw the browser's result at once; Python computes the same selection and stores it.
  /** @param {Uint8Array<ArrayBuffer>} mask */
  choose(mask) {
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

  /** @param {number} count */
  showSelectionCount(count) {
    setText(this.tools.count, count ? `${count.toLocaleString("en")} selected` : "");
    this.tools.count.dataset.count = String(count);
  }

  /** @param {{ id: string } | null} selection */
  async applySelection(selection) {
    const id = selection?.id ?? null;
    if (id === this.selection || (this.selection === "pending" && this.data.seq < this.seq)) return;
    this.selection = id;
    /** @type {SelectionBits | null} */
    const found = id ? await this.tryFetch(`selection-${id}.bin`) : null;
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
  /** @param {number} factor */
  zoom(factor) {
    this.camera.closer(factor);
    this.onCameraMove();
  }
  onCameraMove() {
    this.tellLook();
    this.hover(-1);
    if (this.card.pinned >= 0) this.card.place(this.card.pinned);
    this.draw();
  }

  /**
   * @param {Uint16Array<ArrayBuffer>} from
   * @param {Uint16Array<ArrayBuffer>} to
   * @param {number} share
   */
  between(from, to, share) {
    // between two frames of the training run
    Object.assign(this.cloud, { from, to, share });
    if (this.card.pinned >= 0) this.card.place(this.card.pinned);
    this.draw();
  }

  /** @param {number | undefined} row */
  bring(row) {
    // bring the points named by a link into view
    if (row === undefined) return;
    const [x, y] = this.camera.at(this.cloud, row);
    if (x < 0 || y < 0 || x > this.camera.width || y > this.camera.height)
      this.camera.look(this.cloud.x(row), this.cloud.y(row));
  }

  /**
   * @param {number} px
   * @param {number} py
   * @param {number} reach
   */
  pick(px, py, reach) {
    if (!this.cloud) return -1;
    const [x, y] = this.camera.place(px, py);
    return this.cloud.nearest(x, y, reach / this.camera.scale, (i) => this.states[i] & 1);
  }

  /** @param {number[]} arrow */
  step(arrow) {
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
  /**
   * @param {number} row
   * @param {boolean} onMap true if the pointer is on the map, false if on the images
   */
  hover(row, onMap = true) {
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

  /** @param {number} row */
  announce(row) {
    setText(this.live, `${this.titleOf(row)}${this.tooltip(row)}`);
  }

  /** @param {number} row */
  async open(row, keyboard = false) {
    if (row < 0) return this.close_card();
    clearTimeout(this.timer);
    const address = this.address;
    this.near = null;
    this.card.show(row, true);
    this.announce(row);
    if (keyboard)
      /** @type {HTMLElement | null} */ (this.card.root.querySelector("a"))?.focus({
        preventScroll: true,
      });
    this.draw();
    /** @type {Near | null} */
    const found = await this.tryFetch(`near-${row}.bin`);
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
        this.lines.set(k, /** @type {Contours | null} */ (found));
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
            pose: (/** @type {number} */ share) => {
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

/** @param {string} css */
const rgb = (css) => (css.match(/[\d.]+/g) ?? []).slice(0, 3).map((v) => Number(v) / 255);
