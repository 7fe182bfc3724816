// Session of a page with Python over one link, where the newest request goes first: style sheets
// and schema, theme, numbered requests and their answers, and the address of the state. A page is
// an object that uses its session:
//
//   class Errata {
//     constructor(session: Session<TruthData, TruthRequest, TruthAnswer>) {
//       mountPanel(session.whole, () => ...);     // style sheets and session.schema are loaded
//       session.send({ scene, n });               // and from here on, whenever the state changes
//     }
//     onAnswer(answer: TruthAnswer) { ... }       // never one that is older than the last
//   }
//   export const { render, unmount } = defineSession(
//     { api: "api/truth", styles: "library/errata/errata.css" },
//     (session: Session<TruthData, TruthRequest, TruthAnswer>) => new Errata(session),
//   );
import { render as renderInto } from "preact";
import { signal } from "@preact/signals";
import { asset } from "./address.ts";
import type { App, AskingData, Filmed, Motion, Schema, SetState, Theme } from "./types.ts";
import { defineComponent, loadStyles, receiveFallback } from "./component.ts";
import { applyTheme, div, writeAddress } from "./dom.ts";
import { Link, decode, firstId, socketAddress } from "./socket.ts";

// Functions that a page gives its session.
export interface SessionPage<D, A> {
  onAnswer(answer: A): void;
  onTheme?(): void; // after the theme has changed
  onData?(data: D): void; // after Streamlit has sent data
  onLinkFollowed?(data: D): void; // after a link was followed within the visit
  busy?: boolean; // a gesture is going on: links that are followed are ignored
  resize?(): void; // fits the figures in presentation mode
  paint?(): void; // before a frame of a film is taken
  motions?: Motion[]; // loops for films
  clock?: Filmed["clock"]; // of a figure that plays
  close?(): void;
}
// Modules that a session belongs to: address of the socket, style sheet of the page.
export interface Place<D> {
  api: string;
  styles: string;
  below?: string; // style sheet that the page's own extends
  early?(data: D): unknown; // starts a download next to the style sheets
}

// D: data of Streamlit; R: request without its number; A: answer
export class Session<
  D extends AskingData,
  R extends object,
  A extends { id: number },
> implements App<D> {
  readonly whole = div("lab");
  readonly theme = signal<Theme>("light");
  readonly hidden: ReadonlySet<string>; // names of parts that the address hides
  readonly link: Link<R & { id: number }>;
  readonly ready: Promise<void>;
  readonly early: unknown; // download of the page that has started
  schema: Schema;
  data: D;
  query: string; // of the state
  last = firstId(); // number of the last request
  answered = this.last; // number of the last answer
  setState: SetState;
  trigger: SetState;
  private readonly root: ParentNode;
  private readonly queries: Set<AskingData["query"]>; // of states that were shown
  private page: SessionPage<D, A> | undefined;

  constructor(
    root: ParentNode,
    data: D,
    { api, styles, below, early }: Place<D>,
    create: (session: Session<D, R, A>) => SessionPage<D, A>,
  ) {
    this.root = root;
    this.data = data;
    this.hidden = new Set(data.hide);
    this.query = typeof data.query === "string" ? data.query : "";
    this.queries = new Set([data.query]);
    this.link = new Link(
      socketAddress(data, api),
      (buffer) => this.receive(buffer),
      (request) => this.setState("ask", request),
    );
    this.early = early?.(data);
    this.ready = loadStyles(root, styles, ...(below ? [asset(below)] : [])).then((schema) => {
      if (this.link.closed) return;
      this.schema = schema;
      root.append(this.whole);
      this.theme.value = applyTheme(root, this.whole);
      this.page = create(this);
    });
  }

  // Send a request, which replaces one that still waits; return its number.
  send(request: R) {
    this.link.send({ ...request, id: ++this.last });
    return this.last;
  }

  // Write the link of the state; `kept`: names of parameters that belong to no state.
  setLink(query: string, kept: readonly string[]) {
    this.query = query;
    this.queries.add(query);
    writeAddress(query, kept);
  }

  get slower() {
    return this.link.fallback ? "No direct connection. Answers take a little longer." : "";
  }

  get motions() {
    return this.page?.motions ?? [];
  }

  get clock() {
    return this.page?.clock;
  }

  receive(buffer: ArrayBuffer) {
    const answer = decode<A>(buffer);
    if (answer.id < this.answered) return;
    this.answered = answer.id;
    this.page?.onAnswer(answer);
  }

  async update(data: D) {
    await this.ready;
    this.data = data;
    const theme = applyTheme(this.root, this.whole);
    if (theme !== this.theme.value) {
      this.theme.value = theme;
      this.page?.onTheme?.();
    }
    this.page?.onData?.(data);
    if (this.page?.onLinkFollowed && !this.queries.has(data.query) && !this.page.busy) {
      this.queries.add(data.query);
      this.page.onLinkFollowed(data);
    }
    receiveFallback(this, data);
  }

  resize() {
    this.page?.resize?.();
  }

  paint() {
    this.page?.paint?.();
  }

  close() {
    this.page?.close?.();
    this.link.close();
    renderInto(null, this.whole);
  }
}

// Return the render and unmount functions of a page's module.
export const defineSession = <D extends AskingData, R extends object, A extends { id: number }>(
  place: Place<D>,
  create: (session: Session<D, R, A>) => SessionPage<D, A>,
) =>
  defineComponent<D, Session<D, R, A>>(
    class extends Session<D, R, A> {
      constructor(root: ParentNode, data: D) {
        super(root, data, place, create);
      }
    },
  );
