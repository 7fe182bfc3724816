// Base class of pages that send requests to Python over one link, where the newest request goes
// first, and draw the answers. Subclasses define elements, requests and the handling of answers.
/** @import { AskingData, Child, Schema, SetState, Theme } from "./types.js" */
import { loadStyles, newTheme, receiveFallback } from "./component.js";
import { el, writeAddress } from "./dom.js";
import { Link, decode, firstId, socketAddress } from "./socket.js";

/**
 * @template {AskingData} D
 * @template {{ id: number }} R type of a request
 * @template {{ id: number }} A type of an answer
 */
export class Asking {
  /** @type {Schema} */
  schema;
  /** @type {HTMLElement} */
  whole;
  /** @type {ResizeObserver} */
  observer;
  /** @type {Theme} */
  theme;
  /** @type {SetState} */
  setState;
  /** @type {number} */
  telling;
  /** @type {number} */
  resting;
  seq = firstId();
  answered = this.seq;
  /** @type {number | null} */
  frameRequest = null;
  /** @type {number | undefined} */
  painting; // answer that is painted

  /**
   * @param {ParentNode} root
   * @param {D} data
   * @param {{ api: string, module: string }} about
   */
  constructor(root, data, { api, module }) {
    this.root = root;
    this.data = data;
    this.hidden = new Set(data.hide);
    this.query = data.query ?? "";
    this.queries = new Set([data.query]);
    /** @type {Link<R>} */
    this.link = new Link(
      socketAddress(data, api),
      (buffer) => this.receive(buffer),
      (request) => this.setState("ask", request),
    );
    this.ready = this.build(data, module);
  }

  /**
   * @param {D} data
   * @param {string} module
   */
  async build(data, module) {
    this.schema = await loadStyles(this.root, module);
    this.root.append((this.whole = this.dom()));
    newTheme(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.onReady(data);
  }

  // ---- hooks for subclasses
  /** @returns {HTMLElement} */
  dom() {
    throw new TypeError("a page has its own elements");
  }
  // Called once the elements exist.
  /** @param {D} _data */
  onReady(_data) {}
  // Called after the theme has changed.
  onTheme() {}
  resize() {
    this.draw();
  }
  // Called after a link was followed within the session.
  /** @param {D} _data */
  onLinkFollowed(_data) {}
  /** @param {A} _answer */
  onAnswer(_answer) {}
  paint() {}
  rest() {}
  get busy() {
    return false;
  }

  /**
   * @param {string} name
   * @param {string} title
   * @param {...Child} children
   */
  section(name, title, ...children) {
    return this.hidden.has(name) ? [] : [el("section", {}, el("h4", {}, title), ...children)];
  }

  // ---- messages from Streamlit and Python
  /** @param {D} data */
  async update(data) {
    await this.ready;
    this.data = data;
    if (newTheme(this)) this.onTheme();
    if (!this.queries.has(data.query) && !this.busy) {
      this.queries.add(data.query);
      this.onLinkFollowed(data);
    }
    receiveFallback(this, data);
  }

  /** @param {ArrayBuffer} buffer */
  receive(buffer) {
    const answer = /** @type {A} */ (decode(buffer));
    if (answer.id < this.answered) return;
    this.answered = answer.id;
    this.onAnswer(answer);
  }

  // Write the link of the current state; `kept`: names of parameters that belong to no state.
  /**
   * @param {string} query
   * @param {readonly string[]} kept
   */
  setLink(query, kept) {
    this.query = query;
    this.queries.add(query);
    writeAddress(query, kept);
  }

  get slower() {
    return this.link.fallback ? "No direct connection. Answers take a little longer." : "";
  }

  // ---- drawing and gestures
  /** @param {number} [id] of the answer */
  draw(id) {
    this.painting = id ?? this.painting;
    this.frameRequest ??= requestAnimationFrame(() => {
      this.frameRequest = null;
      this.paint();
    });
  }

  // Announce the result of a gesture to screen readers.
  /**
   * @param {() => void} act
   * @param {number} after delay in ms
   */
  tellSoon(act, after) {
    clearTimeout(this.telling);
    this.telling = setTimeout(act, after);
  }

  // Handle a key press; more may follow before the gesture ends.
  restSoon() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rest(), 250);
  }

  close() {
    this.observer?.disconnect();
    clearTimeout(this.telling);
    clearTimeout(this.resting);
    this.link.close();
  }
}
