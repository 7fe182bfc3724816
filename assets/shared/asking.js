// A page that asks Python over one link, where the newest question is answered first, and draws
// what comes. Its class says its elements, what it asks, and what it makes of an answer.
/** @import { AskingData, Child, Schema, SetState, Theme } from "./types.js" */
import { loadStyles, newTheme, receiveFallback } from "./component.js";
import { el, writeAddress } from "./dom.js";
import { Link, decode, firstId, socketAddress } from "./socket.js";

/**
 * @template {AskingData} D
 * @template {{ id: number }} R a request
 * @template {{ id: number }} A an answer
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
  painting; // the answer that is painted

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
    this.begin(data);
  }

  // ---- what a page says
  /** @returns {HTMLElement} */
  dom() {
    throw new TypeError("a page has its own elements");
  }
  // Its elements stand there.
  /** @param {D} _data */
  begin(_data) {}
  // The theme is another.
  themed() {}
  resize() {
    this.draw();
  }
  // A link was followed within the session.
  /** @param {D} _data */
  followed(_data) {}
  /** @param {A} _answer */
  received(_answer) {}
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

  // ---- from Streamlit and from Python
  /** @param {D} data */
  async update(data) {
    await this.ready;
    this.data = data;
    if (newTheme(this)) this.themed();
    if (!this.queries.has(data.query) && !this.busy) {
      this.queries.add(data.query);
      this.followed(data);
    }
    receiveFallback(this, data);
  }

  /** @param {ArrayBuffer} buffer */
  receive(buffer) {
    const answer = /** @type {A} */ (decode(buffer));
    if (answer.id < this.answered) return;
    this.answered = answer.id;
    this.received(answer);
  }

  // The link of what is shown; `kept` are the names of the address that belong to no state.
  /**
   * @param {string} query
   * @param {readonly string[]} kept
   */
  linked(query, kept) {
    this.query = query;
    this.queries.add(query);
    writeAddress(query, kept);
  }

  get slower() {
    return this.link.fallback
      ? "No direct connection: answers come through the page itself, a little slower."
      : "";
  }

  // ---- drawing, and the hand
  /** @param {number} [id] of the answer */
  draw(id) {
    this.painting = id ?? this.painting;
    this.frameRequest ??= requestAnimationFrame(() => {
      this.frameRequest = null;
      this.paint();
    });
  }

  // A gesture has ended: a word to those who do not see it.
  /**
   * @param {() => void} act
   * @param {number} after milliseconds
   */
  tellSoon(act, after) {
    clearTimeout(this.telling);
    this.telling = setTimeout(act, after);
  }

  // A key was pressed: more may follow.
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
