// Introduction of the plane: the opening animation, a row of presets, and the guided tour.
import type { Place, Situation } from "../types.ts";
import type { Fields } from "./plane.ts";
import type { Scene, FieldData } from "./types.ts";
import { div } from "../dom.ts";
import { Pills, mountPanel } from "../panel/panel.tsx";
import { rounded } from "./view.ts";

export class Lessons {
  app: Fields<FieldData>;
  row = div("lessons");
  show: () => void;
  preset: number | undefined;
  situation: string | undefined;
  tourStep: number | null = null;
  home: Place | null = null; // place of the negative while it circles

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
    this.app.put(scene);
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
    this.app.put(step.scene);
    this.tourStep = index;
    this.show();
    this.mark(step.look);
    (this.row.querySelector(".next") as HTMLElement).focus({ preventScroll: true });
  }

  endTour() {
    this.situations();
    this.app.canvas.focus({ preventScroll: true });
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
      home = [...app.scene.negative],
      at = circle(app.scene);
    app.handles.anchor.classList.add("pulse");
    this.home = home;
    const begin = performance.now() + 400;
    const step = (now: number) => {
      if (this.home !== home) return;
      const t = Math.min(Math.max((now - begin) / 6000, 0), 1);
      app.scene.negative = t < 1 ? at(t * t * (3 - 2 * t)) : home;
      app.move();
      if (t < 1) requestAnimationFrame(step);
      else {
        this.home = null;
        app.rest(false);
      }
    };
    requestAnimationFrame(step);
  }

  // Return the same motion for a recording.
  motion() {
    const { app } = this,
      home = [...app.scene.negative],
      at = circle(app.scene);
    return {
      title: "N goes around A and P",
      pose: (share: number) => {
        this.still();
        app.scene.negative = at(share);
        app.move();
      },
      end: () => {
        app.scene.negative = home;
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
    this.app.handles.anchor.classList.remove("pulse");
    if (!this.home) return;
    this.app.scene.negative = this.home;
    this.home = null;
  }
}

// Return the place of the negative after a share 0..1 of a circle around the middle of the pair.
function circle({ anchor, positive, negative: [x, y] }: Scene) {
  const [cx, cy] = [0, 1].map((i) => (anchor[i] + positive[i]) / 2),
    radius = Math.hypot(x - cx, y - cy),
    from = Math.atan2(y - cy, x - cx);
  return (share: number) => {
    const angle = from + 2 * Math.PI * share;
    return [cx + radius * Math.cos(angle), cy + radius * Math.sin(angle)];
  };
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
