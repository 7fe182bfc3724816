// The map page: points of a run on a plane. Python sends the points once and tells what is
// selected; everything that moves is drawn here, and only the corners of a lasso go up.
/** @import { Colouring, Facts, Frame, Lasso, MapData, Near, Neighbour, Points, SelectionBits } from "./types.js" */
/** @import { Mounted, SetState, Theme } from "../../shared/types.js" */
import { applyTheme, drawing, el, save, setText, styled } from "../../shared/dom.js";
import { decode } from "../../shared/socket.js";
import { Camera } from "./camera.js";
import { Card } from "./card.js";
import { Cloud, corners, packed, unpacked } from "./cloud.js";
import { Painter as Flat } from "./flat.js";
import { Painter as Gl } from "./gl.js";
import { listen } from "./pointer.js";
import { COLOURINGS, Legend, colours } from "./legend.js";
import { ImageCache, paintOver } from "./overlay.js";
import { Player } from "./player.js";
import { figure } from "./export.js";

const DWELL = 125,
  FAINT = 0.14; // milliseconds before an image is fetched; how much is left of what stands back
/** @type {Partial<Record<Colouring, number>>} */
const SHAPED = { class: 1, right: 2 };
/** @param {string} name */
const here = (name) => new URL(name, import.meta.url).href;
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
}

/** @param {HTMLElement} parentElement */
export function unmount(parentElement) {
  maps.get(parentElement)?.close();
  maps.delete(parentElement);
}

export class MapView {
  /** @type {HTMLButtonElement[]} */
  tools;
  /** @type {HTMLSelectElement} */
  colour;
  /** @type {HTMLOutputElement} */
  count;
  /** @type {HTMLAnchorElement} */
  csv;
  /** @type {string} */
  address;
  /** @type {{ name: string; label: number; row: number; count: number; colour: string; }[]} */
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
  line = null; // of the lasso
  /** @type {{ row: number, neighbours: Neighbour[] } | null} */
  near = null; // of the opened point
  /** @type {Partial<Record<Colouring, Facts>>} */
  facts = {};
  /** @type {Partial<Record<Colouring, string>>} */
  failed = {};
  /** @type {Cloud} */
  cloud = /** @type {any} */ (null); // until its points are here
  /** @type {Uint8Array<ArrayBuffer>} */
  mask; // of the selection
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
    this.named = true;
    this.seq = 0;
    this.look = { colour: data.look.colour, classes: data.look.classes, images: true };
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
    this.notice = el("div", { class: "notice", hidden: true });
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
      this.card.root,
      this.notice,
      el(
        "div",
        { class: "zoom" },
        button("+", "zoom in", () => this.zoom(1.4)),
        button("−", "zoom out", () => this.zoom(1 / 1.4)),
        button("⤢", "whole map", () => {
          this.camera.whole();
          this.moved();
        }),
      ),
    );
    this.whole.append(
      this.bar(),
      el("div", { class: "body" }, this.frame, this.legend.root),
      this.player.root,
      this.live,
    );
    this.painter = this.newPainter();
    this.points.addEventListener("webglcontextlost", (e) => {
      e.preventDefault();
      this.painter.lost();
    });
    this.points.addEventListener("webglcontextrestored", () => {
      this.painter.build();
      this.draw();
    });
    listen(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.loadStyles = styled(root, here("../../shared/shared.css"), here("map.css")).then(() => {
      root.append(this.whole);
      this.observer.observe(this.frame);
    });
  }

  newPainter() {
    try {
      return new Gl(this.points);
    } catch {
      this.showMessage("This browser has no WebGL2: the map is drawn without it, which is slower.");
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
    this.player.pause();
    clearTimeout(this.timer);
    clearTimeout(this.telling);
  }

  // ---- the tools above the map
  bar() {
    const tool = (
      /** @type {string} */ name,
      /** @type {string} */ text,
      /** @type {string} */ help,
    ) =>
      el(
        "button",
        {
          "data-tool": name,
          "aria-pressed": String(name === this.tool),
          title: help,
          onclick: () => this.take(name),
        },
        text,
      );
    this.tools = [
      tool("move", "Move", "drag the map (M); Shift and drag adds a lasso"),
      tool("lasso", "Lasso", "draw around points to select them (L); with Shift they are added"),
    ];
    this.colour = el(
      "select",
      { "aria-label": "colour by" },
      ...Object.entries(COLOURINGS).map(([name, { title, help }]) =>
        el(
          "option",
          { value: name, title: help ?? "", selected: name === this.look.colour },
          title,
        ),
      ),
    );
    this.colour.addEventListener("change", () => {
      this.look.colour = /** @type {Colouring} */ (this.colour.value);
      this.recolour();
      this.tellLook();
    });
    const box = (
      /** @type {string} */ label,
      /** @type {boolean} */ on,
      /** @type {(on: boolean) => void} */ act,
      /** @type {string} */ help,
    ) => {
      const input = el("input", { type: "checkbox", checked: on });
      input.addEventListener("change", () => {
        act(input.checked);
        this.draw();
      });
      return el("label", { class: "box", title: help }, input, label);
    };
    this.count = el("output", { class: "count", "aria-label": "selected" });
    this.csv = el(
      "a",
      { class: "button", download: "", title: "places, classes and neighbours of all points" },
      "CSV",
    );
    return el(
      "div",
      { class: "bar" },
      el("span", { class: "tools", role: "group", "aria-label": "tool" }, ...this.tools),
      el("label", { class: "box" }, "colour by", this.colour),
      box(
        "names",
        true,
        (on) => {
          this.named = on;
        },
        "the name of each class at its most central point",
      ),
      box(
        "images",
        true,
        (on) => {
          this.look.images = on;
        },
        "zoomed in to 150 points or fewer, points become images",
      ),
      this.count,
      el(
        "span",
        { class: "take" },
        el(
          "button",
          { title: "the map as it is shown, twice as fine", onclick: () => this.png() },
          "PNG",
        ),
        this.csv,
      ),
    );
  }

  /** @param {string} name */
  take(name) {
    this.tool = name;
    for (const button of this.tools)
      button.setAttribute("aria-pressed", String(button.dataset.tool === name));
    this.cursor();
  }

  cursor() {
    this.canvas.style.cursor =
      this.tool === "lasso" ? "crosshair" : this.hovered >= 0 ? "pointer" : "grab";
  }

  // ---- from Python
  /** @param {MapData} data */
  async update(data) {
    const fresh = data.points !== this.address;
    this.data = data;
    this.csv.href = `${data.points}map.csv`;
    if (fresh) {
      this.address = data.points;
      this.cloud = /** @type {any} */ (null);
      const arriving = /** @type {Promise<Points | null>} */ (this.tried("points.bin")),
        [arrived] = await Promise.all([arriving, this.loadStyles]);
      if (this.address !== data.points || !arrived) return;
      this.learn(arrived);
    }
    if (!this.cloud) return;
    this.themed();
    const rows = this.data.marks.map((index) => this.cloud.row(index)).filter((row) => row >= 0);
    if (String(rows) !== String(this.marked)) {
      this.marked = rows;
      this.bring(rows[0]);
    }
    this.canvas.dataset.own = String(this.data.own ?? "");
    await this.selected(this.data.selection);
    this.draw();
  }

  // A file of this map; an error whose message is for the visitor where there is none.
  /**
   * @template {object} A
   * @param {string} name
   * @returns {Promise<A>}
   */
  async fetched(name) {
    const answer = await fetch(`${this.address}${name}`).catch(() => null);
    if (answer?.ok) return decode(await answer.arrayBuffer());
    throw new Refused(
      answer?.status === 409
        ? await answer.text()
        : "Part of the map could not be loaded. Is the server running? Load the page again.",
    );
  }

  // The same, with null for none: then it is said on the map.
  /**
   * @template {object} A
   * @param {string} name
   * @returns {Promise<A | null>}
   */
  async tried(name) {
    try {
      return await this.fetched(name);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.showMessage(error.message);
      return null;
    }
  }

  /** @param {Points} arrived */
  learn(arrived) {
    this.cloud = new Cloud(arrived);
    Object.assign(this, {
      hovered: -1,
      near: null,
      facts: {},
      failed: {},
      marked: [],
      line: null,
      mask: new Uint8Array(this.cloud.count),
      selection: null,
    });
    this.bySize = [...this.cloud.classes].sort((a, b) => b.count - a.count);
    this.labels = new Set(this.cloud.classes.map((c) => c.label));
    this.look.classes = this.look.classes.filter((label) => this.labels.has(label));
    const { xy } = arrived,
      last = this.data.steps.length - 1;
    this.player.update(this.data.steps, xy, (k) =>
      k === last
        ? Promise.resolve(xy)
        : this.tried(`frame-${k}.bin`).then(
            (frame) => /** @type {Frame | null} */ (frame)?.xy ?? xy,
          ),
    );
    this.camera.whole();
    this.resize();
    this.recolour();
  }

  themed() {
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

  // ---- colours and what stands out
  async recolour() {
    const { colour } = this.look,
      { array } = COLOURINGS[colour];
    if (!this.cloud || !this.theme) return;
    if (array && !this.facts[colour]) {
      this.legend.show();
      this.canvas.setAttribute("aria-busy", "true");
      try {
        this.facts[colour] = await this.fetched(`${array}.bin`);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        this.failed[colour] = error.message;
        return this.legend.show();
      } finally {
        this.canvas.removeAttribute("aria-busy");
      }
      if (this.look.colour !== colour) return;
    }
    this.keys = array ? /** @type {Facts} */ (this.facts[colour]).values : this.cloud.group;
    this.table = colours(colour, this.cloud.classes, this.theme);
    this.canvas.dataset.colour = colour;
    this.stand();
    this.legend.show();
  }

  /** @param {number} label */
  stands(label) {
    return !this.look.classes.length || this.look.classes.includes(label);
  }
  /** @param {number} row */
  nameOf(row) {
    return this.cloud.classes[this.cloud.group[row]].name;
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
    this.stand();
    this.legend.show();
    this.tellLook();
  }

  stand() {
    const { cloud, mask } = this,
      some = this.selection !== null,
      stands = cloud.classes.map((c) => this.stands(c.label));
    this.states = new Uint8Array(cloud.count);
    for (let i = 0; i < cloud.count; i++)
      this.states[i] = (stands[cloud.group[i]] && (!some || mask[i]) ? 1 : 0) | (mask[i] << 1);
    this.draw();
  }

  /** @param {number} row */
  edge(row) {
    // of an image: the colour of its point, dashed where the nearest neighbour is wrong
    const k = 4 * (this.keys[row] & 255),
      wrong = this.look.colour === "right" && this.keys[row] === 0;
    return {
      colour: `rgb(${this.table[k]}, ${this.table[k + 1]}, ${this.table[k + 2]})`,
      dashed: wrong,
    };
  }

  /** @param {number} row */
  told(row) {
    const { colour } = this.look,
      value = this.facts[colour]?.values[row];
    if (value === undefined || value === 255) return "";
    if (colour === "right") return value ? " · ✓ neighbour right" : " · ✗ neighbour wrong";
    return colour === "purity" ? ` · purity ${Math.round((100 * value) / 254)} %` : "";
  }

  tellLook() {
    // once the hand rests, so that the link says it
    clearTimeout(this.telling);
    this.telling = setTimeout(
      () =>
        this.setState("look", {
          colour: this.look.colour,
          classes: this.look.classes.slice(0, 50),
        }),
      400,
    );
  }

  // ---- the selection
  /** @param {boolean} add */
  enclose(add) {
    const frame = this.player.settle(),
      polygon = this.line && this.line.length > 2 ? corners(this.line) : new Uint16Array();
    this.line = null;
    if (polygon.length < 6) return this.draw();
    this.ask({ polygon: packed(polygon), frame, add });
    const mask = this.cloud.enclosed(polygon);
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

  // What the browser has found is drawn at once; Python finds the same and keeps it.
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
    this.counted(count);
    // the number need not wait for 60,000 points to be drawn
    requestAnimationFrame(() => this.stand());
  }

  /** @param {number} count */
  counted(count) {
    setText(this.count, count ? `${count.toLocaleString("en")} selected` : "");
    this.count.dataset.count = String(count);
  }

  /** @param {{ id: string } | null} selection */
  async selected(selection) {
    const id = selection?.id ?? null;
    if (id === this.selection || (this.selection === "pending" && this.data.seq < this.seq)) return;
    this.selection = id;
    /** @type {SelectionBits | null} */
    const found = id ? await this.tried(`selection-${id}.bin`) : null;
    if (this.selection !== id) return;
    this.mask = found ? unpacked(found.bits, this.cloud.count) : new Uint8Array(this.cloud.count);
    this.counted(this.mask.reduce((sum, bit) => sum + bit, 0));
    this.canvas.dataset.selection = id ?? "";
    this.stand();
  }

  // ---- geometry
  resize() {
    const { width } = this.frame.getBoundingClientRect(),
      ratio = this.ratio ?? Math.min(devicePixelRatio || 1, 2);
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
      marks = this.look.colour === "right" ? 1.25 : 1; // a cross needs room
    return Math.min(7, marks * alone * this.camera.zoom ** 0.4);
  }
  /** @param {number} factor */
  zoom(factor) {
    this.camera.closer(factor);
    this.moved();
  }
  moved() {
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
    // of two frames of the training
    Object.assign(this.cloud, { from, to, share });
    if (this.card.pinned >= 0) this.card.place(this.card.pinned);
    this.draw();
  }

  /** @param {number | undefined} row */
  bring(row) {
    // what a link names into sight
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
    const row = cloud.beside(from, arrow, camera.window(), (i) => this.states[i] & 1, this.hovered);
    if (row >= 0) this.hover(row);
  }

  // ---- one point
  /** @param {number} row */
  hover(row) {
    if (row === this.hovered) return;
    this.hovered = row;
    this.canvas.dataset.hovered = row < 0 ? "" : String(this.cloud.indices[row]);
    this.cursor();
    clearTimeout(this.timer);
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
    setText(
      this.live,
      `class ${this.nameOf(row)}, sample ${this.cloud.indices[row]}${this.told(row)}`,
    );
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
    const found = await this.tried(`near-${row}.bin`);
    if (!found || this.card.pinned !== row || this.address !== address) return;
    this.near = { row, neighbours: found.neighbours };
    this.card.tell(found.neighbours);
    this.draw();
  }

  close_card() {
    this.card.hide();
    this.near = null;
    this.draw();
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
      shaped: SHAPED[this.look.colour] ?? 0,
      ...camera.clip(),
      radius: this.radius() * sharpness,
      faint: FAINT,
      paper: rgb(this.paper),
      ink: rgb(this.ink),
    });
    const ctx = drawing(this.canvas);
    ctx.setTransform(sharpness, 0, 0, sharpness, 0, 0);
    paintOver(ctx, this);
    this.canvas.dataset.images = String(this.imagesDrawn);
    this.canvas.dataset.painted = String(Number(this.canvas.dataset.painted ?? 0) + 1);
    this.canvas.dataset.count = String(cloud.count);
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
