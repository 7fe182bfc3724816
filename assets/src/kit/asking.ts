// Base class of pages that send requests to Python over one link, where the newest request goes
// first, and draw the answers. Subclasses define elements, requests and the handling of answers.
import type { AskingData, Child, Schema, SetState, Theme } from "./types.ts";
import { loadStyles, newTheme, receiveFallback } from "./component.ts";
import { el, writeAddress } from "./dom.ts";
import { Link, decode, firstId, socketAddress } from "./socket.ts";

// R: type of a request
// A: type of an answer
export class Asking<D extends AskingData, R extends { id: number }, A extends { id: number }> {
  root: ParentNode;
  data: D;
  hidden: Set<string>;
  query: string;
  queries: Set<string | undefined>;
  link: Link<R>;
  ready: Promise<void>;
  schema: Schema;
  whole: HTMLElement;
  observer: ResizeObserver;
  theme: Theme;
  setState: SetState;
  telling: number;
  resting: number;
  seq = firstId();
  answered = this.seq;
  frameRequest: number | null = null;
  painting: number | undefined; // answer that is painted

  constructor(root: ParentNode, data: D, { api, styles }: { api: string; styles: string }) {
    this.root = root;
    this.data = data;
    this.hidden = new Set(data.hide);
    this.query = data.query ?? "";
    this.queries = new Set([data.query]);
    this.link = new Link(
      socketAddress(data, api),
      (buffer) => this.receive(buffer),
      (request) => this.setState("ask", request),
    );
    this.ready = this.build(data, styles);
  }

  async build(data: D, styles: string) {
    this.schema = await loadStyles(this.root, styles);
    this.root.append((this.whole = this.dom()));
    newTheme(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.onReady(data);
  }

  // ---- hooks for subclasses
  dom(): HTMLElement {
    throw new TypeError("a page has its own elements");
  }
  // Called once the elements exist.
  onReady(_data: D) {}
  // Called after the theme has changed.
  onTheme() {}
  resize() {
    this.draw();
  }
  // Called after a link was followed within the session.
  onLinkFollowed(_data: D) {}
  onAnswer(_answer: A) {}
  paint() {}
  rest() {}
  get busy() {
    return false;
  }

  section(name: string, title: string, ...children: Child[]) {
    return this.hidden.has(name) ? [] : [el("section", {}, el("h4", {}, title), ...children)];
  }

  // ---- messages from Streamlit and Python
  async update(data: D) {
    await this.ready;
    this.data = data;
    if (newTheme(this)) this.onTheme();
    if (!this.queries.has(data.query) && !this.busy) {
      this.queries.add(data.query);
      this.onLinkFollowed(data);
    }
    receiveFallback(this, data);
  }

  receive(buffer: ArrayBuffer) {
    const answer = decode(buffer) as A;
    if (answer.id < this.answered) return;
    this.answered = answer.id;
    this.onAnswer(answer);
  }

  // Write the link of the current state; `kept`: names of parameters that belong to no state.
  setLink(query: string, kept: readonly string[]) {
    this.query = query;
    this.queries.add(query);
    writeAddress(query, kept);
  }

  get slower() {
    return this.link.fallback ? "No direct connection. Answers take a little longer." : "";
  }

  // ---- drawing and gestures
  // id: of the answer
  draw(id?: number) {
    this.painting = id ?? this.painting;
    this.frameRequest ??= requestAnimationFrame(() => {
      this.frameRequest = null;
      this.paint();
    });
  }

  // Announce the result of a gesture to screen readers.
  // after: delay in ms
  tellSoon(act: () => void, after: number) {
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
