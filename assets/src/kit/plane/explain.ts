// Column of formulas: the loss, its current numbers, the force laws, the active region, margins
// with their derivation.
import type { Setting } from "../types.ts";
import type { Fields } from "./plane.ts";
import type { Field, Margin, Region, FieldData } from "./types.ts";
import { div, el, onward, stateOf, symbol, tidy } from "../dom.ts";
import { formula, prose } from "../formula/formula.ts";
import { POINTS } from "../colours.ts";
import { chart } from "./charts.tsx";
import { clamping } from "./numbers.ts";

export class Explain {
  app: Fields<FieldData>;
  laws: SVGElement;
  cut: SVGElement;
  values: HTMLParagraphElement;
  table: HTMLTableElement;
  region: HTMLDivElement;
  margins: HTMLDivElement;
  details: HTMLDetailsElement;
  head: HTMLDivElement;
  lawKeys: HTMLParagraphElement;
  cutBox: HTMLElement;
  side: HTMLDivElement;
  constructor(app: Fields) {
    this.app = app;
    this.laws = chart("forces against edge length");
    this.cut = chart("energy along the cut");
    this.values = el("p", { class: "values" });
    this.table = el("table", { class: "numbers" });
    this.region = el("div");
    this.margins = el("div");
    this.details = el(
      "details",
      { class: "section", hidden: true },
      el("summary", {}, "Margins and balance"),
      this.margins,
    );
    this.details.addEventListener("toggle", () => {
      if (this.details.open) app.rest(false);
    });
    this.head = el("div");
    this.lawKeys = el("p", { class: "caption" });
    this.cutBox = el("section", { hidden: true }, el("h4", {}, "Energy along the cut"), this.cut);
    this.side = div(
      "explain",
      this.head,
      this.values,
      el("section", {}, el("h4", {}, "Pull and push by distance"), this.laws, this.lawKeys),
      el("section", {}, el("h4", {}, "Forces along the edges and their sum"), this.table),
      this.region,
      this.details,
    );
  }

  build() {
    const { schema, scene, data } = this.app,
      { note } = data,
      loss = schema.losses[scene.loss];
    this.head.replaceChildren(
      el("h3", {}, loss.title),
      el("p", {}, loss.sentence),
      formula(loss.latex),
      el("p", { class: "caption" }, loss.source),
      ...(note?.loss === scene.loss
        ? [
            el(
              "p",
              { class: "caption" },
              `${note.text} `,
              el(
                "a",
                { href: onward(`${data.base}studies`, note.query) },
                "All losses on Omniglot",
              ),
            ),
          ]
        : []),
    );
  }

  numbers(f: Field) {
    const { scene, schema, hidden } = this.app;
    const names: [string, Setting | undefined][] = schema.losses[scene.loss].controls.map((c) => [
      c.symbol,
      scene.hyper[c.name] ?? (c.name in scene.hyper ? "∞" : c.default),
    ]);
    if (f.mu !== null) names.push(["\\mu", f.mu]);
    this.values.replaceChildren(
      ...names.flatMap(([s, v], i) => [
        ...(i ? [", "] : []),
        el("i", {}, ...symbol(s)),
        ` = ${typeof v === "number" ? tidy(v) : v}`,
      ]),
      names.length ? ". " : "",
      clamping(f.positive, f.m2),
    );
    this.forces(f);
    this.lawKeys.replaceChildren(
      el("b", { class: "pull" }, "● pull"),
      " along A–P, ",
      el("b", { class: "push" }, "■ push"),
      " along A–N (solid) and P–N (dashed); markers: current distances",
      f.hit ? "." : `, hollow because this triplet is ${stateOf(f)}.`,
    );
    if (f.region !== undefined) this.about(f.region);
    if (f.has_margins !== undefined)
      this.details.hidden = !f.has_margins || hidden.has("margins") || hidden.has("m1");
    if (f.margins !== undefined) this.marginRows(f.margins);
  }

  forces(f: Field) {
    const cell = (x: number) =>
        el(
          "td",
          {},
          Math.abs(x) < 5e-5 ? "0" : Math.abs(x) >= 1000 ? x.toExponential(2) : x.toFixed(3),
        ),
      name = { anchor: "A", positive: "P", negative: "N" };
    const along = {
      anchor: [f.strengths.ap, f.strengths.an, null],
      positive: [f.strengths.ap, null, f.strengths.pn],
      negative: [null, f.strengths.an, f.strengths.pn],
    };
    this.table.replaceChildren(
      el(
        "tr",
        {},
        ...["", "pull A–P", "push A–N", "push P–N", "other", "sum x", "sum y"].map((t) =>
          el("th", { scope: "col" }, t),
        ),
      ),
      ...POINTS.map((point, i) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, name[point]),
          ...along[point].map((x) => (x === null ? el("td", {}, "–") : cell(x))),
          cell(Math.hypot(...f.residuals[i])),
          ...f.forces[i].map(cell),
        ),
      ),
    );
  }

  about(region: Region | null) {
    this.region.replaceChildren(
      ...(region
        ? [
            el(
              "section",
              {},
              el("h4", {}, "Active region of the negative"),
              el(
                "p",
                {},
                ...prose(region.shape),
                region.area === null ? "; unbounded." : `; area ${region.area.toPrecision(6)}.`,
              ),
              ...(region.latex ? [formula(region.latex)] : []),
              el(
                "p",
                { class: "caption" },
                region.closed ? "Closed form." : "Numerical integration.",
              ),
            ),
          ]
        : []),
    );
  }

  marginRows(rows: Margin[]) {
    const { app } = this,
      box = (name: "B" | "C") => {
        const b = el("input", {
          type: "number",
          min: 2,
          step: 1,
          value: app.batch[name],
          "aria-label": name === "B" ? "batch size B" : "classes C",
        });
        b.addEventListener("change", () => {
          app.batch[name] = Number(b.value);
          app.rest(false);
        });
        return b;
      };
    const focused = this.margins.querySelector("input:focus")?.getAttribute("aria-label");
    this.margins.replaceChildren(
      ...rows.map((row) =>
        div(
          "margin",
          ...(row.batch
            ? [div("row batch", el("label", {}, "B ", box("B")), el("label", {}, "C ", box("C")))]
            : []),
          row.error
            ? el("p", { class: "caption" }, row.error)
            : el(
                "button",
                {
                  onclick: () =>
                    app.put({ hyper: { ...app.scene.hyper, ...row.set }, margin: "raw" }),
                },
                row.label,
              ),
          ...(row.latex ?? []).map((latex) => formula(latex)),
          ...(row.note ? [el("p", { class: "caption" }, row.note)] : []),
        ),
      ),
    );
    if (focused) {
      const before = this.margins.querySelector(`[aria-label="${focused}"]`);
      if (before instanceof HTMLElement) before.focus();
    }
  }
}
