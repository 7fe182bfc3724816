// Compare page: two to four losses over linked points, their difference, and the verdict whether
// they are the same loss. Python computes, judges and writes the link; this module holds the
// comparison during gestures.
import type { CompareAnswer, CompareData, CompareRequest, Comparison, Held } from "./types.ts";
import type { Plane } from "./planes.tsx";
import type { LandscapeSlot } from "../../../kit/landscape_slot.ts";
import type { Phase } from "../../../kit/figure/spec.ts";
import type { Places } from "../../../kit/panel/panel.tsx";
import type { Session, SessionPage } from "../../../kit/session.ts";
import type { Place } from "../../../kit/types.ts";
import { signal } from "@preact/signals";
import { still } from "../../../kit/dom.ts";
import { mountPanel } from "../../../kit/panel/panel.tsx";
import { defineSession } from "../../../kit/session.ts";
import { differenceOf, fieldOf } from "./fields.ts";
import { createLandscapes } from "./landscapes.ts";
import { Layout } from "./layout.tsx";
import { chipTexts, describeDifference, describePlane } from "./numbers.ts";
import { Orbit } from "./orbit.ts";
import { createPlane, setField } from "./planes.tsx";
import { scalesOf } from "./scales.tsx";

const MOVING = 60, // nodes per side during a gesture and at rest; 20 arrows divide both
  RESTING = 140;

type CompareSession = Session<CompareData, CompareRequest, CompareAnswer>;

// Tell in the elements which answer is painted.
function markPainted({ answer, session }: Compare, canvas: HTMLCanvasElement) {
  const cards = session.whole.querySelector<HTMLElement>(".cards");
  if (answer.value && cards) cards.dataset.seq = canvas.dataset.seq = String(answer.value.id);
}

export class Compare implements SessionPage<CompareData, CompareAnswer> {
  readonly session: CompareSession;
  state: Comparison;
  readonly pressed = signal<number | null>(null); // preset that is shown
  readonly answer = signal<CompareAnswer | null>(null); // last one with fields
  readonly scaleText = signal("null"); // text of the scales
  readonly settled = signal<CompareAnswer | null>(null); // last answer with link and script
  readonly notice = signal("");
  readonly locked = signal(false); // the scale of colours stays
  readonly places;
  readonly orbit = new Orbit(this);
  readonly landscapes: LandscapeSlot;
  landscape: HTMLElement | null = null; // elements of both surfaces
  readonly planes: Plane[] = []; // of the losses
  readonly difference = createPlane(this, {
    label: "difference of the two losses",
    scene: { region: false, forces: false },
    describe: () => describeDifference(this),
  });
  readonly render: () => void;
  private scales: Held = {}; // kept during a gesture
  private place: Place | null = null; // under the pointer

  constructor(session: CompareSession) {
    const { data, whole, theme } = session;
    this.session = session;
    this.state = structuredClone(data.comparison);
    this.places = signal<Places>({ ...this.state, theme: theme.value });
    this.landscapes = createLandscapes(this);
    this.fitPlanes();
    this.render = mountPanel(whole, () => <Layout app={this} />);
    this.rest();
    if (data.idle && !still()) this.orbit.start();
  }

  get all(): Plane[] {
    return [...this.planes, this.difference];
  }

  // Create and close planes until there is one for each loss.
  private fitPlanes() {
    const { planes, state } = this;
    for (const { figure } of planes.splice(state.panels.length)) figure.close();
    for (let k = planes.length; k < state.panels.length; k++)
      planes.push(
        createPlane(this, {
          label: `loss ${k + 1}`,
          first: k === 0,
          describe: () => describePlane(this, k),
          painted: (canvas) => k === 0 && markPainted(this, canvas),
        }),
      );
  }

  // ---- state
  /** Change the comparison as a control asks for; its scale of colours fits, unless locked. */
  change(changes: Partial<Comparison>, preset = this.pressed.value) {
    this.orbit.stop();
    Object.assign(this.state, changes);
    this.pressed.value = preset;
    this.fitPlanes();
    this.render();
    this.rescale();
  }

  /** Fit the scale of colours again, unless it is locked and `insist` is false. */
  rescale(insist = false) {
    if (insist || !this.locked.value) this.scales = {};
    this.rest();
  }

  gesture(phase: Phase) {
    if (phase === "start") this.orbit.stop();
    else if (phase === "move") this.move();
    else this.rest();
  }

  get busy() {
    return this.all.some(({ figure }) => Boolean(figure.busy));
  }

  onLinkFollowed({ comparison }: CompareData) {
    this.change(structuredClone(comparison), null);
  }

  // ---- requests and answers
  private ask(n: number) {
    const { state: comparison, locked, place, scales } = this;
    this.session.send({
      comparison,
      n,
      settle: n === RESTING,
      lock: locked.value,
      ...scales,
      ...(place && { at: place }),
    });
  }

  /** Request the numbers under the pointer, unless a figure is waiting to be sent. */
  look(place: Place | null) {
    const { waiting } = this.session.link;
    this.place = place;
    if (!place) for (const { chip } of this.all) chip.value = null;
    else if (waiting) waiting.at = place;
    else this.session.send({ comparison: this.state, at: place, fields: false });
  }

  onAnswer(answer: CompareAnswer) {
    const { at } = answer,
      count = this.planes.length;
    if (at && this.place)
      chipTexts(answer, count).forEach((text, k) => {
        this.all[k].chip.value = { place: at, text };
      });
    if (answer.panels?.length !== count) return;
    this.answer.value = answer;
    this.scaleText.value = scalesOf(answer, this.state);
    this.notice.value = this.session.slower;
    this.scales = { scale: answer.scale, reference: answer.reference, span: answer.span };
    this.spread(answer);
    this.draw();
    if (answer.query === undefined) return;
    this.settled.value = answer;
    for (const { figure } of this.all) figure.announce();
    if (!this.orbit.home) this.session.setLink(answer.query, ["hide", "socket"]);
  }

  // Give each plane its field.
  private spread(answer: CompareAnswer) {
    const theme = this.session.theme.value;
    this.planes.forEach((plane, k) => setField(plane, fieldOf(answer, this.state, k), theme));
    setField(this.difference, differenceOf(answer, this.state), theme);
  }

  // ---- drawing
  private draw() {
    this.places.value = { ...this.state, theme: this.session.theme.value };
    for (const { figure } of this.all) figure.invalidate();
  }

  move() {
    this.draw();
    this.ask(MOVING);
    this.landscapes.follow(false);
  }

  /** End a gesture: request the fine figure and the link. */
  rest() {
    this.draw();
    this.ask(RESTING);
    this.landscapes.follow(true);
  }

  onTheme() {
    if (this.answer.value) this.spread(this.answer.value);
    for (const { figure } of this.all) figure.setTheme(this.session.theme.value);
    this.draw();
    if (this.landscapes.shown) this.landscapes.follow(true);
  }

  resize() {
    for (const { figure } of this.all) figure.resize();
  }

  close() {
    this.orbit.stop();
    this.landscapes.close();
    for (const { figure } of this.all) figure.close();
  }
}

export const { render, unmount } = defineSession(
  { api: "api/compare", styles: "losses/fields/compare/compare.css" },
  (session: CompareSession) => new Compare(session),
);
