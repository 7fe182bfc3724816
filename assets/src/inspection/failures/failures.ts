// Plane of a real triplet: that of the Fields page, with images next to the points, the circle of
// the sphere, the end points of one step, and its effect on the ranks of the query. All numbers
// come from Python.
import type { FailureAnswer, FailureData } from "./types.ts";
import type { Frame } from "../../kit/figure/spec.ts";
import type { Context } from "../../kit/types.ts";
import type { Shown } from "./step_table.tsx";
import type { StepSize } from "./ranks.tsx";
import type { Field, FieldData } from "../../kit/plane/types.ts";
import type { Fields } from "../../kit/plane/plane.ts";
import type { Variant } from "../../kit/plane/variant.ts";
import { h, render as renderInto } from "preact";
import { signal } from "@preact/signals";
import { asset } from "../../kit/address.ts";
import { POINTS } from "../../kit/colours.ts";
import { div, el } from "../../kit/dom.ts";
import { fieldsWith } from "../../kit/plane/plane.ts";
import { LegendParts, WhatIf } from "./around.tsx";
import { Overlay } from "./overlay.tsx";
import { Ranks } from "./ranks.tsx";

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

class Failure implements Variant {
  readonly name = "failure";
  readonly route = "api/failure";
  readonly styles = [asset("inspection/failures/failures.css")];
  readonly kept = ["hide", "socket", "selection", "class"];
  readonly motions = false; // of the three embeddings
  private readonly app: Fields;
  private readonly size = signal({} as StepSize);
  private readonly shownData = signal({} as FailureData);
  private readonly numbers = signal<{ shown: Shown; drawn: string; busy: boolean }>();
  private readonly away = signal(false); // points differ from the embeddings
  private known: string; // link as Python knows it, or soon will
  private pending: string[] = []; // links that were sent to Python without an answer yet
  private failure: Shown | undefined;
  private overlay: Overlay;

  constructor(app: Fields) {
    this.app = app;
    this.known = this.data.query;
    this.showTriplet(this.data);
  }

  private get data(): FailureData {
    return this.app.data as FailureData;
  }

  // ---- what differs from the plane of the Fields page
  radius() {
    return this.data.circle;
  }
  extra() {
    return { of: this.data.of, ...this.size.value };
  }
  defaults(loss: string) {
    const { home } = this.data;
    return loss === home.loss ? { ...home.hyper } : undefined;
  }
  home() {
    return this.data.home;
  }

  arrange() {
    const { app } = this,
      { figure, panel, explain, stage, schema } = app,
      ranks = div("ranks"),
      whatIf = div("what-if"),
      parts = div("legend-parts");
    this.overlay = new Overlay(app);
    this.overlay.images.value = this.data.images;
    const losses = Object.entries(schema.losses).map(([name, { title }]): [string, string] => [
      name,
      title,
    ]);
    const state = { data: this.shownData, size: this.size, numbers: this.numbers };
    renderInto(
      h(Ranks, {
        losses,
        state,
        onDraw: (loss) => app.edit.put({ loss, margin: "raw", mu: null }),
        onSize: (rests) => this.resize(rests),
      }),
      ranks,
    );
    renderInto(
      h(WhatIf, { away: this.away, onBack: () => app.edit.put(app.edit.atHome()) }),
      whatIf,
    );
    renderInto(h(LegendParts, { app, overlay: this.overlay, data: this.shownData }), parts);
    figure.root.before(whatIf);
    figure.legend.append(parts);
    explain.side.classList.add("below-all");
    explain.side.before(ranks);
    explain.side.prepend(div("", explain.head, explain.values));
    stage.classList.add("with-ranks");
    panel.side.before(fold(stage, "show-panel", "Loss, points and view"));
    ranks.before(fold(stage, "show-detail", "Formula and forces"));
  }

  private resize(rests: boolean) {
    if (rests) return this.app.rest(false);
    this.app.touch();
    return this.app.move();
  }

  private showTriplet(data: FailureData) {
    this.size.value = { rate: data.rate, by: data.by };
    this.shownData.value = data;
    if (this.overlay) this.overlay.images.value = data.images;
  }

  // ---- messages
  isStale(answer: Field) {
    const { error, of } = answer as FailureAnswer;
    if (error) this.app.readout.notice.textContent = error;
    return Boolean(error) || !same(of, this.data.of);
  }

  onField(answer: Field) {
    const { failure } = answer as FailureAnswer,
      { app } = this;
    if (!failure) return;
    this.failure = {
      ...failure,
      steps: { ...this.failure?.steps, ...failure.steps },
      fresh: new Set(Object.keys(failure.steps)),
    };
    const { home } = this.data,
      busy = Boolean(app.figure.busy);
    this.numbers.value = { shown: this.failure, drawn: app.scene.loss, busy };
    this.away.value = POINTS.some((k) => app.scene[k].some((v, i) => v !== home[k][i]));
  }

  onPaint(ctx: Context, frame: Frame) {
    this.overlay.draw(ctx, frame, this.data.circle, this.failure?.ends);
  }

  // Streamlit knows only addresses that it wrote or loaded itself, so links written here are sent
  // to Python.
  onLink(query: string) {
    if (query === this.known) return;
    this.known = query;
    this.pending.push(query);
    const { setState, requests } = this.app;
    setState("link", { query: location.search.slice(1), id: requests.answered });
  }

  accept(sent: FieldData) {
    const { app } = this;
    let data = sent as FailureData;
    // Ignore echoes of sent links; the display is newer.
    const echo = this.pending.indexOf(data.query);
    if (echo >= 0) {
      this.pending.splice(0, echo + 1);
      data = { ...data, query: app.query };
    } else this.known = data.query;
    if (!same(data.of, this.data.of)) {
      const { of, home, circle, images } = data;
      app.data = { ...this.data, of, home, circle, images } as FieldData;
      app.edit.history.restart(JSON.stringify(data.scene));
      this.failure = undefined;
      this.showTriplet(data);
    }
    return data;
  }

  onData() {
    this.shownData.value = this.data;
  }
}

// Return a button that opens and closes part of the page on phones.
function fold(stage: HTMLElement, part: "show-panel" | "show-detail", text: string) {
  const button: HTMLButtonElement = el(
    "button",
    {
      class: `fold ${part}`,
      "aria-expanded": "false",
      onclick: () => button.setAttribute("aria-expanded", String(stage.classList.toggle(part))),
    },
    text,
  );
  return button;
}

export const { render, unmount } = fieldsWith((app) => new Failure(app));
