// Plane of a real triplet: that of the Fields page, with images next to the points, the circle of
// the sphere, the end points of one step, and its effect on the ranks of the query. All numbers
// come from Python.
import type { FailureAnswer, FailureData } from "./types.ts";
import type { Shown } from "./step_table.ts";
import type { StepSize } from "./ranks.ts";
import type { Field, FieldData } from "../../kit/plane/types.ts";
import type { Fields } from "../../kit/plane/plane.ts";
import type { Variant } from "../../kit/plane/variant.ts";
import { asset } from "../../kit/address.ts";
import { POINTS } from "../../kit/colours.ts";
import { keyMark } from "../../kit/controls.ts";
import { el, setText } from "../../kit/dom.ts";
import { fieldsWith } from "../../kit/plane/plane.ts";
import { presentButton } from "../../kit/present/present.ts";
import { Overlay } from "./overlay.ts";
import { Ranks } from "./ranks.ts";

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

class Failure implements Variant {
  readonly name = "failure";
  readonly route = "api/failure";
  readonly styles = [asset("inspection/failures/failures.css")];
  readonly kept = ["hide", "socket", "selection", "class"];
  readonly motions = false; // of the three embeddings
  private readonly app: Fields;
  private size: StepSize;
  private known: string; // link as Python knows it, or soon will
  private pending: string[] = []; // links that were sent to Python without an answer yet
  private failure: Shown | undefined;
  private overlay: Overlay;
  private ranks: Ranks;
  private readonly status = el("span", { role: "status" });
  private readonly back = el(
    "button",
    { class: "back", onclick: () => this.app.edit.put(this.app.edit.atHome()) },
    "Back to the embeddings",
  );
  private readonly whatIf = el("div", { class: "what-if" }, this.status, this.back);
  private readonly circleKey = keyMark("dotted", "unit sphere in this plane");

  constructor(app: Fields) {
    this.app = app;
    const { rate, by, query } = this.data;
    this.size = { rate, by };
    this.known = query;
  }

  private get data(): FailureData {
    return this.app.data as FailureData;
  }

  // ---- what differs from the plane of the Fields page
  radius() {
    return this.data.circle;
  }
  extra() {
    return { of: this.data.of, ...this.size };
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
      { figure, panel, explain, stage, schema } = app;
    this.overlay = new Overlay(app);
    this.ranks = new Ranks(
      Object.entries(schema.losses).map(([name, { title }]) => [name, title]),
      (loss) => app.edit.put({ loss, margin: "raw", mu: null }),
    );
    figure.root.before(this.whatIf);
    const images = el("input", { type: "checkbox", checked: true });
    images.addEventListener("change", () => this.overlay.toggle(images.checked));
    figure.legend.append(
      keyMark("ghost", "after one step"),
      this.circleKey,
      el("label", { class: "key" }, images, "images"),
      el("button", { class: "png", onclick: () => app.png() }, "PNG"),
      ...presentButton(app),
    );
    explain.side.classList.add("below-all");
    explain.side.before(this.ranks.root);
    explain.side.prepend(el("div", {}, explain.head, explain.values));
    stage.classList.add("with-ranks");
    panel.side.before(fold(stage, "show-panel", "Loss, points and view"));
    this.ranks.root.before(fold(stage, "show-detail", "Formula and forces"));
    this.showTriplet();
  }

  private showTriplet() {
    const { data } = this;
    this.ranks.showSize(this.size, data, (rests) => {
      if (rests) return this.app.rest(false);
      this.app.touch();
      return this.app.move();
    });
    this.overlay.load(data.images);
    this.circleKey.hidden = !data.circle;
    this.ranks.showTrueStep(data);
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
    this.ranks.update(this.failure, app.scene.loss, Boolean(app.figure.busy));
    const { home } = this.data,
      away = POINTS.some((k) => app.scene[k].some((v, i) => v !== home[k][i]));
    this.whatIf.classList.toggle("away", away);
    this.back.hidden = !away;
    setText(
      this.status,
      away
        ? "Points differ from the embeddings."
        : "The three embeddings. Drag a point to see what changes.",
    );
  }

  onPaint() {
    this.overlay.update(this.data.circle, this.failure?.ends);
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
      const { of, home, circle, images, rate, by } = data;
      app.data = { ...this.data, of, home, circle, images } as FieldData;
      app.edit.history.restart(JSON.stringify(data.scene));
      this.failure = undefined;
      this.size = { rate, by };
      this.showTriplet();
    }
    return data;
  }

  onData() {
    this.ranks.showTrueStep(this.data);
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
