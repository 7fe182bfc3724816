// Introduction of the plane: the opening animation, a row of presets, and the guided tour.
import type { Place, Situation } from "../types.ts";
import type { Fields } from "./plane.ts";
import type { Scene, FieldData } from "./types.ts";
import { div, el } from "../dom.ts";
import { rounded } from "./view.ts";

export class Lessons {
  app: Fields<FieldData>;
  row: HTMLDivElement;
  preset: number | undefined;
  situation: string | undefined;
  home: Place | null = null; // place of the negative while it circles

  constructor(app: Fields) {
    this.app = app;
    this.row = div("lessons");
    this.situations();
  }

  situations() {
    const { app } = this,
      { hidden } = app,
      { situations } = app.schema;
    const pill = (s: Situation) =>
      el(
        "button",
        {
          title: s.sentence,
          "aria-pressed": String(this.situation === s.name),
          onclick: () => {
            this.situation = s.name;
            this.preset = undefined;
            app.put(s.scene);
            this.situations();
          },
        },
        s.name,
      );
    const chosen = situations.find((s) => s.name === this.situation);
    this.row.replaceChildren(
      ...(hidden.has("situations")
        ? []
        : [
            div(
              "pills",
              ...situations.map(pill),
              el("button", { class: "tour", onclick: () => this.step(0) }, "Tour ▸"),
            ),
          ]),
      ...(chosen ? [el("p", { class: "caption", role: "status" }, chosen.sentence)] : []),
    );
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
    const { app } = this,
      { tour } = app.schema,
      step = tour[index],
      last = index === tour.length - 1;
    this.preset = this.situation = undefined;
    app.put(step.scene);
    const leave = () => {
      this.mark();
      this.situations();
      app.canvas.focus({ preventScroll: true });
    };
    this.row.replaceChildren(
      el(
        "div",
        { class: "card", role: "region", "aria-label": "tour" },
        el("b", {}, `${index + 1} / ${tour.length}  ${step.title}`),
        el("p", { role: "status" }, step.text),
        div(
          "pills",
          el("button", { onclick: () => this.step(index - 1), disabled: !index }, "back"),
          el(
            "button",
            { class: "next", onclick: () => (last ? leave() : this.step(index + 1)) },
            last ? "finish" : "Next ▸",
          ),
          ...(last ? [] : [el("button", { onclick: leave }, "End tour")]),
        ),
      ),
    );
    this.mark(step.look);
    (this.row.querySelector(".next") as HTMLElement).focus({ preventScroll: true });
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
      { scene } = app,
      home = [...scene.negative],
      centre = [0, 1].map((i) => (scene.anchor[i] + scene.positive[i]) / 2);
    const radius = Math.hypot(home[0] - centre[0], home[1] - centre[1]),
      from = Math.atan2(home[1] - centre[1], home[0] - centre[0]);
    app.handles.anchor.classList.add("pulse");
    this.home = home;
    const begin = performance.now() + 400;
    const step = (now: number) => {
      if (this.home !== home) return;
      const t = Math.min(Math.max((now - begin) / 6000, 0), 1),
        angle = from + 2 * Math.PI * (t * t * (3 - 2 * t));
      app.scene.negative =
        t < 1 ? [centre[0] + radius * Math.cos(angle), centre[1] + radius * Math.sin(angle)] : home;
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
      centre = [0, 1].map((i) => (app.scene.anchor[i] + app.scene.positive[i]) / 2),
      radius = Math.hypot(home[0] - centre[0], home[1] - centre[1]),
      from = Math.atan2(home[1] - centre[1], home[0] - centre[0]);
    return {
      title: "N goes around A and P",
      pose: (share: number) => {
        const angle = from + 2 * Math.PI * share;
        this.still();
        app.scene.negative = [
          centre[0] + radius * Math.cos(angle),
          centre[1] + radius * Math.sin(angle),
        ];
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
