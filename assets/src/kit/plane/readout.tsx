// Numbers next to the plane: values of the triplet and of a place under the pointer, the help where
// nothing pulls, and the charts.
import type { Fields } from "./plane.ts";
import type { Field, Hover } from "./types.ts";
import { render } from "preact";
import { LETTER, POINTS } from "../colours.ts";
import { div, readouts, show, stateOf, tidy } from "../dom.ts";
import { cutChart, lawsChart } from "./charts.tsx";
import { wayOut } from "./way_out.ts";

const NUMBERS = 100, // ms between two updates of the numbers
  CHARTS = 90, // of the charts, which follow sliders at that rate
  CHARTS_DRAGGED = 400; // of the charts while a point is dragged, which changes few of their curves

const size = ([x, y]: number[]) => show(Math.hypot(x, y));

export class Readout {
  readonly box = div("readout");
  readonly notice = div("notice");
  spoken: Field | undefined; // answer whose numbers are shown, on the arrows as in the tables
  summary = ""; // of the state, for screen readers
  private bring: Field["bring"] = null; // place at which the scanning point would be active
  private numbered = 0;
  private charted = 0;
  private later: ReturnType<typeof setTimeout> | undefined;
  private readonly app: Fields;

  constructor(app: Fields) {
    this.app = app;
  }

  /**
   * Show the numbers of the last answer, at most ten times a second unless `now`. Repainting charts
   * costs the plane frames where there is no GPU, so they follow less often.
   */
  update(now: boolean): void {
    const { app } = this,
      time = performance.now();
    clearTimeout(this.later);
    if (!app.field) return;
    if (!now && time - this.numbered < NUMBERS) {
      this.later = setTimeout(() => this.update(false), NUMBERS);
      return;
    }
    this.numbered = time;
    this.spoken = app.field;
    this.showNumbers(app.field);
    app.figure.invalidate();
    app.panel.show();
    app.explain.numbers(app.field);
    if (!now && time - this.charted < (app.figure.busy ? CHARTS_DRAGGED : CHARTS)) return;
    this.charted = time;
    this.drawCharts();
  }

  /** Draw the charts of forces and of the energy along the cut. */
  drawCharts(): void {
    const { explain, field, scene, theme, variant } = this.app;
    if (!field || variant.bare) return;
    lawsChart(explain.laws, field, theme);
    explain.cutBox.hidden = !field.cut;
    if (field.cut) cutChart(explain.cut, field, scene, theme);
  }

  /** Show the numbers at a place, unless the pointer has left it. */
  showHover(hover: Hover): void {
    const { app } = this,
      { figure, scene } = app;
    if (figure.busy || !figure.cursor) return;
    app.hovered = hover;
    figure.showTip(hover.at, [
      [`${LETTER[scene.probe]} here`, hover.at.map((v) => v.toFixed(3)).join(", ")],
      ["loss", show(hover.energy)],
      ["before clamp", show(hover.raw)],
      ["force", Math.hypot(...hover.force).toPrecision(4)],
      ...Object.entries(hover.edges).map(([pair, length]): [string, string] => [
        `d(${pair.toUpperCase().split("").join(",")})`,
        length.toFixed(3),
      ]),
      ["", `${stateOf(hover)}${hover.hit ? "" : ": no force"}`],
    ]);
    figure.invalidate();
  }

  close(): void {
    clearTimeout(this.later);
  }

  private showNumbers(f: Field): void {
    const { scene, schema } = this.app,
      state = stateOf(f);
    readouts(this.box, [
      ["loss", show(f.energy)],
      ["before clamp", show(f.raw)],
      ["triplet", state],
      ["force on A", size(f.forces[0])],
      ["force on P", size(f.forces[1])],
      ["force on N", size(f.forces[2])],
      ["d(A,P)", show(f.edges.ap)],
      ["d(A,N)", show(f.edges.an)],
      ["d(P,N)", show(f.edges.pn)],
    ]);
    this.showNotice(f);
    const points = POINTS.map(
      (name, i) =>
        `${name} at ${scene[name].map(tidy).join(", ")} feels force ${f.forces[i].map((x) => x.toPrecision(3)).join(", ")}`,
    );
    this.summary = `${schema.losses[scene.loss].title} loss ${show(f.energy)}, triplet ${state}; ${points.join("; ")}`;
  }

  // Reason why the figure is slow or without force, with a button that changes it.
  private showNotice(f: Field): void {
    const { app } = this,
      { scene } = app;
    if (f.bring !== undefined) this.bring = f.bring;
    const slower = app.requests.link.fallback
      ? "No direct connection. Figures take a little longer. "
      : "";
    const { text, label, change } = wayOut(f, scene, {
      bring: app.figure.busy ? null : (this.bring ?? null),
      parameters: app.edit.parameters(),
      home: app.edit.atHome(),
      margin: app.schema.losses[scene.loss].margin,
      fixed: app.hidden.has("reset"),
    });
    render(
      <>
        {slower + text}
        {label && <button onClick={() => app.edit.put(change, true)}>{label}</button>}
      </>,
      this.notice,
    );
  }
}
