// Transport page: a feature map to paint, prototypes to drag, and the results of three poolings.
// Python computes everything.
import { h } from "preact";
import { signal } from "@preact/signals";
import type { Brush, Shown, TransportAnswer, TransportData, TransportRequest } from "./types.ts";
import { findPreset, mountPanel } from "../../kit/panel/panel.tsx";
import { defineSession, Session } from "../../kit/session.ts";
import { Story } from "../story/story.ts";
import { Editor } from "./editor.ts";
import { Page } from "./page.tsx";
import { triangleFigure } from "./triangle.ts";

type TransportSession = Session<TransportData, TransportRequest, TransportAnswer>;

export class Transport {
  readonly session: TransportSession;
  readonly editor: Editor;
  readonly figure: ReturnType<typeof triangleFigure>;
  readonly story: Story;
  readonly shown = signal({} as Shown); // changes once per frame
  readonly pressed = signal<number | null>(null); // preset
  readonly origin = signal(""); // of the map
  readonly live = signal("");
  readonly notice = signal("");
  readonly show: () => void;
  answer: TransportAnswer | undefined;
  mark: number | null = null; // cell under the pointer
  cursor = 0; // cell of the keyboard cursor
  private frame: number | undefined;
  private panelling: ReturnType<typeof setTimeout> | undefined;

  constructor(session: TransportSession) {
    const { data } = session;
    this.session = session;
    this.story = new Story({ data, hidden: session.hidden }, "transport", {
      back: ["prototypes", "an average"],
      next: ["gap_vs_gsp", "can it be learned?"],
    });
    this.editor = new Editor(data.state, data.options, (atRest) => this.changed(atRest));
    this.figure = triangleFigure(this);
    this.shown.value = this.current();
    this.show = mountPanel(session.whole, () => h(Page, { app: this }));
    this.changed(true);
  }

  // ---- changes
  changed(atRest: boolean) {
    this.session.send({ state: this.editor.state, ...(atRest ? { rest: true } : {}) });
    this.pressed.value = findPreset(this.session.data.options.presets, this.editor.state);
    if (atRest) this.show();
    this.draw();
  }

  setBrush(change: Partial<Brush>) {
    this.editor.setBrush(change);
    this.draw();
  }

  setEpsilon(epsilon: number) {
    const [low, high] = this.session.data.options.limits.epsilon;
    this.editor.set("epsilon", Number(Math.min(Math.max(epsilon, low), high).toPrecision(3)));
    clearTimeout(this.panelling);
    this.panelling = setTimeout(this.show, 120);
  }

  // Add a prototype and focus its handle.
  add() {
    this.editor.add();
    this.figure.handles
      .get(`prototype-${this.editor.state.prototypes.length}`)
      ?.focus({ preventScroll: true });
  }

  // Show the numbers of a cell; `spoken`: to screen readers, too.
  look(cell: number | null, spoken = false) {
    if (cell === this.mark) return;
    this.mark = cell;
    this.draw(spoken && cell !== null);
  }

  key(event: KeyboardEvent) {
    if (!(event.ctrlKey || event.metaKey)) return;
    if (event.target instanceof Element && event.target.matches("input")) return;
    const key = event.key.toLowerCase();
    if (key === "z" && !event.shiftKey) this.editor.undo();
    else if (key === "y" || key === "z") this.editor.redo();
    else return;
    event.preventDefault();
  }

  // ---- messages
  onTheme() {
    this.figure.setTheme(this.session.theme.value);
    this.draw();
  }

  onLinkFollowed({ state }: TransportData) {
    this.editor.load(state);
  }

  onAnswer(answer: TransportAnswer) {
    const { query, id, shares, verdict, next } = answer;
    this.answer = answer;
    this.notice.value = this.session.slower;
    this.story.tell(verdict, next);
    this.draw();
    if (query === undefined || id !== this.session.last) return;
    this.session.setLink(query, this.session.data.options.kept);
    this.origin.value = this.story.origin(query, "paint");
    const [lp, smoothed, average] = shares.map((share) => share.toFixed(3));
    this.live.value = `Share of the weight on the informative pixels: linear programme ${lp}, smoothed ${smoothed}, average ${average}.`;
  }

  resize() {
    this.figure.resize();
  }

  close() {
    clearTimeout(this.panelling);
    if (this.frame) cancelAnimationFrame(this.frame);
    this.figure.close();
  }

  // ---- drawing
  draw(spoken = false) {
    this.frame ??= requestAnimationFrame(() => {
      const { answer, session, figure } = this;
      this.frame = undefined;
      this.shown.value = this.current();
      figure.invalidate();
      if (spoken) this.live.value = session.whole.querySelector(".cell")?.textContent ?? "";
      if (!answer) return;
      session.whole.dataset.seq = String(answer.id);
      if (answer.query !== undefined && answer.id === session.last)
        session.whole.dataset.rest = String(answer.id);
    });
  }

  private current(): Shown {
    const { answer, mark, editor, session } = this,
      { brush } = editor,
      { canUndo, canRedo } = editor.scenes;
    return { answer, mark, brush, canUndo, canRedo, theme: session.theme.value };
  }
}

export const { render, unmount } = defineSession(
  { api: "api/transport", styles: "pooling/transport/transport.css" },
  (session: TransportSession) => new Transport(session),
);
