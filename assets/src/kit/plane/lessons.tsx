// Introduction of the plane: the opening animation, a row of presets, and the guided tour.
import type { Place, Situation } from "../types.ts";
import type { Fields } from "./plane.ts";
import type { Scene } from "./types.ts";
import { div } from "../dom.ts";
import { animate } from "../figure/motion.ts";
import { rounded } from "../figure/view.ts";
import { Pills, mountPanel } from "../panel/panel.tsx";
import { orbitOf } from "./orbit.ts";

export class Lessons {
  app: Fields;
  row = div("lessons");
  show: () => void;
  preset: number | undefined;
  situation: string | undefined;
  tourStep: number | null = null;
  home: Place | null = null; // place of the negative while it circles
  stop = () => {}; // ends its circling

  constructor(app: Fields) {
    this.app = app;
    this.show = mountPanel(this.row, () =>
      this.tourStep === null ? (
        <Situations lessons={this} />
      ) : (
        <TourStep lessons={this} index={this.tourStep} />
      ),
    );
  }

  // Show the situations to choose from, instead of a step of the tour.
  situations() {
    if (this.tourStep !== null) this.mark();
    this.tourStep = null;
    this.show();
  }

  choose({ name, scene }: Situation) {
    this.situation = name;
    this.preset = undefined;
    this.app.edit.put(scene);
    this.situations();
  }

  // Remove a sentence or caption once the scene has changed from the one it describes; zoom and
  // switches do not count.
  outdated() {
    const { app } = this,
      { situations, presets } = app.schema;
    const left = (scene: Partial<Scene>) =>
      (["loss", "anchor", "positive", "negative"] as const).some(
        (k) => JSON.stringify(scene[k]) !== JSON.stringify(app.scene[k]),
      ) || Object.entries(scene.hyper ?? {}).some(([k, v]) => app.scene.hyper[k] !== v);
    const situation = situations.find((s) => s.name === this.situation);
    if (situation && left(situation.scene)) {
      this.situation = undefined;
      this.situations();
    }
    if (this.preset !== undefined && left(presets[this.preset])) {
      this.preset = undefined;
      app.panel.build();
    }
  }

  step(index: number) {
    const step = this.app.schema.tour[index];
    this.preset = this.situation = undefined;
    this.app.edit.put(step.scene);
    this.tourStep = index;
    this.show();
    this.mark(step.look);
    (this.row.querySelector(".next") as HTMLElement).focus({ preventScroll: true });
  }

  endTour() {
    this.situations();
    this.app.figure.canvas.focus({ preventScroll: true });
  }

  // Highlight the control that a step describes.
  mark(label?: string) {
    this.app.root.querySelectorAll(".marked").forEach((x) => x.classList.remove("marked"));
    if (label)
      [...this.app.root.querySelectorAll(`[aria-label="${CSS.escape(label)}"]`)].forEach((x) =>
        (x.closest(".control, label, .pills") ?? x).classList.add("marked"),
      );
  }

  // Move the negative once around the pair, so that visitors see the forces turn. Any input stops
  // it.
  orbit() {
    const { app } = this,
      { handles, root } = app.figure,
      at = orbitOf(app.scene),
      ended = new AbortController();
    for (const kind of ["pointermove", "pointerdown"])
      root.addEventListener(kind, () => this.halt(), { capture: true, signal: ended.signal });
    handles.get("anchor")?.classList.add("pulse");
    this.home = at(1);
    const stop = animate(
      6000,
      (share) => {
        app.scene.negative = at(share);
        app.move();
        if (share < 1) return;
        this.home = null;
        ended.abort();
        app.rest(false);
      },
      400,
    );
    this.stop = () => {
      stop();
      ended.abort();
    };
  }

  // Return the same motion for a recording.
  motion() {
    const { app } = this,
      at = orbitOf(app.scene);
    return {
      title: "N goes around A and P",
      pose: (share: number) => {
        this.still();
        app.scene.negative = at(share);
        app.move();
      },
      end: () => {
        app.scene.negative = at(1);
        app.rest(false);
      },
    };
  }

  // Stop the negative where it is, so that it can be dragged.
  halt() {
    const { scene } = this.app;
    if (!this.home) return;
    this.home = scene.negative.map(rounded);
    this.still();
    this.app.rest();
  }

  still() {
    this.app.figure.handles.get("anchor")?.classList.remove("pulse");
    this.stop();
    if (!this.home) return;
    this.app.scene.negative = this.home;
    this.home = null;
  }
}

function Situations({ lessons }: { lessons: Lessons }) {
  const { schema, hidden } = lessons.app,
    chosen = schema.situations.find((s) => s.name === lessons.situation);
  return (
    <>
      {!hidden.has("situations") && (
        <Pills
          pills={schema.situations.map(({ name, sentence }) => ({ value: name, title: sentence }))}
          value={lessons.situation}
          onChange={(name) => {
            const found = schema.situations.find((s) => s.name === name);
            if (found) lessons.choose(found);
          }}
        >
          <button class="tour" onClick={() => lessons.step(0)}>
            Tour ▸
          </button>
        </Pills>
      )}
      {chosen && (
        <p class="caption" role="status">
          {chosen.sentence}
        </p>
      )}
    </>
  );
}

function TourStep({ lessons, index }: { lessons: Lessons; index: number }) {
  const { tour } = lessons.app.schema,
    { title, text } = tour[index],
    last = index === tour.length - 1;
  return (
    <div class="card" role="region" aria-label="tour">
      <b>{`${index + 1} / ${tour.length}  ${title}`}</b>
      <p role="status">{text}</p>
      <div class="pills">
        <button onClick={() => lessons.step(index - 1)} disabled={!index}>
          back
        </button>
        <button class="next" onClick={() => (last ? lessons.endTour() : lessons.step(index + 1))}>
          {last ? "finish" : "Next ▸"}
        </button>
        {!last && <button onClick={() => lessons.endTour()}>End tour</button>}
      </div>
    </div>
  );
}
