// Panel next to the plane: loss and sliders, points, layers, figures, export.
import type { FieldData } from "./types.ts";
import type { Hyper, Preset } from "../types.ts";
import type { Fields } from "./plane.ts";
import { el } from "../dom.ts";
import { INK } from "../colours.ts";
import { control, menu, switches } from "../controls.ts";
import { pointRows } from "../points.ts";
import { exportLinks } from "../export.ts";
import { presentButton } from "../present/present.ts";

const MU = {
  name: "mu",
  symbol: "\\mu",
  low: -3,
  high: 3,
  step: 0.005,
  default: 0,
  help: "Normalised margin: energy of the unit equilateral triangle; m1 adapts to s, r and ρ",
};
export type Tick = "region" | "forces" | "edges" | "mining" | "discs" | "cut";
const TICKS: [Tick, string, string][] = [
  ["region", "active region", "Hatched: the loss is clamped, so the gradient is zero"],
  ["forces", "forces on A, P, N", "Force on each point and its size"],
  [
    "edges",
    "forces along edges",
    "Each force as pull along A-P, push along A-N and P-N, and the rest; drawn to scale",
  ],
  [
    "mining",
    "easy / semi-hard / hard",
    "Fig. 2.5: hard negatives are nearer than the positive, semi-hard ones are farther but active, easy ones have no loss",
  ],
  [
    "discs",
    "ranking discs, ellipse",
    "Discs of the ranking loss with margin 0.1 around A and P, and the ellipse of Appendix B",
  ],
  ["cut", "cut through the energy", "Energy along a line; drag its two ends"],
];

export class Panel {
  app: Fields<FieldData>;
  side: HTMLDivElement;
  rows: ReturnType<typeof pointRows>;

  constructor(app: Fields) {
    this.app = app;
    this.side = el("div", { class: "panel" });
  }

  build() {
    const { app } = this,
      { hidden } = app,
      root = this.side.getRootNode() as ShadowRoot,
      focused = root.activeElement?.getAttribute("aria-label");
    const parts = {
      loss: () => this.loss(),
      points: () => this.points(),
      shown: () => this.shown(),
      figures: () => this.figures(),
      take: () => this.take(),
    };
    const open = new Set(
      [...this.side.querySelectorAll("details")].filter((d) => d.open).map((d) => d.dataset.part),
    );
    this.side.replaceChildren(
      ...Object.entries(parts)
        .filter(([name]) => !hidden.has(name))
        .flatMap(([, part]) => part()),
    );
    for (const d of this.side.querySelectorAll("details"))
      d.open = open.has(d.dataset.part) || d.dataset.part === "figures";
    if (focused) {
      const before = this.side.querySelector(`[aria-label="${CSS.escape(focused)}"]`);
      if (before instanceof HTMLElement) before.focus();
    }
  }

  show() {
    this.rows?.show(this.app.scene, this.app.theme);
  }

  menu(label: string, key: "shade" | "lines" | "flow" | "snap", then?: () => void) {
    const { app } = this;
    const box = menu(label, app.menus[key], app.scene[key], (value) => {
      app.touch();
      Object.assign(app.scene, { [key]: value });
      then?.();
      app.rest();
    });
    return el("label", { class: "menu" }, el("span", {}, label), box);
  }

  loss() {
    const { app } = this,
      { scene, hidden } = app,
      { losses } = app.schema,
      { controls } = losses[scene.loss];
    const choice = menu("loss", losses, scene.loss, (loss) => {
      app.lessons.preset = undefined;
      app.put({ loss, ...app.margin(loss) });
    });
    const normalised = scene.margin === "normalised";
    const sliders = controls
      .filter((c) => !hidden.has(c.name))
      .map((c) => (normalised && c.name === "m1" ? MU : c))
      .filter((c) => !hidden.has(c.name))
      .map((c) => {
        const owner = (c === MU ? scene : scene.hyper) as Hyper;
        return control(c, owner[c.name] ?? (c.name in owner ? null : c.default), {
          onInput: (x) => {
            app.touch();
            owner[c.name] = x;
            app.move();
          },
          onRest: () => app.rest(),
        });
      });
    const kinds =
      app.margin(scene.loss).margin === "normalised" && !hidden.has("margin") && !hidden.has("m1")
        ? [
            el(
              "div",
              { class: "pills", role: "group", "aria-label": "kind of margin" },
              ...(
                [
                  ["normalised", "normalised margin μ"],
                  ["raw", "margin m₁"],
                ] as const
              ).map(([kind, text]) =>
                el(
                  "button",
                  {
                    "aria-pressed": String(scene.margin === kind),
                    onclick: () => app.put({ margin: kind }, { keepScale: true }),
                  },
                  text,
                ),
              ),
            ),
          ]
        : [];
    return [
      el(
        "section",
        {},
        el("div", { class: "headed" }, el("h4", {}, "Loss"), ...app.resetButton()),
        hidden.has("loss-menu") ? el("b", {}, losses[scene.loss].title) : choice,
      ),
      el(
        "section",
        { class: "sliders" },
        ...(controls.length
          ? sliders
          : [el("p", { class: "caption" }, "This loss has no parameters.")]),
        ...kinds,
      ),
    ];
  }

  points() {
    const { app } = this;
    this.rows = pointRows(INK, {
      onProbe: (name) => {
        app.touch();
        app.scene.probe = name;
        app.scale = app.reference = null;
        app.rest();
        app.explain.build();
      },
      onMove: (name, axis, x) => {
        app.touch();
        const place = [...app.scene[name]];
        place[axis] = x;
        app.scene[name] = app.hand.snapped(name, place);
        app.rest();
        return app.scene[name];
      },
    });
    return [
      el(
        "section",
        {},
        el("h4", {}, "Points"),
        this.rows.grid,
        el(
          "div",
          { class: "menus below-points" },
          this.menu("snap", "snap", () => app.hand.snapNow()),
        ),
      ),
    ];
  }

  shown() {
    const { app } = this,
      rescale = () => {
        app.scale = null;
        app.colourBar();
      };
    const ticks = switches(app.scene, TICKS, (name, on) => {
      app.touch();
      app.scene[name] = on;
      app.rest();
    });
    return [
      el(
        "section",
        {},
        el("h4", {}, "Shown"),
        el(
          "div",
          { class: "menus" },
          this.menu("colour", "shade", rescale),
          this.menu("equipotentials", "lines"),
          this.menu("field", "flow"),
        ),
        ticks,
      ),
    ];
  }

  figures() {
    const { app } = this,
      { presets } = app.schema,
      chosen = presets[app.lessons.preset ?? -1] as Preset | undefined;
    const pill = (text: string, pressed: boolean, act: () => void, name = text) =>
      el("button", { "aria-pressed": String(pressed), "aria-label": name, onclick: act }, text);
    const show = (index: number) => {
      const { figure, panel, caption, ...scene } = presets[index];
      app.lessons.preset = index;
      app.lessons.situation = undefined;
      app.put({ ...app.schema.plain, ...scene });
      app.lessons.situations();
    };
    const names = [...new Set(presets.map((p) => p.figure))],
      panels = presets.map((p, i) => [p, i] as const).filter(([p]) => p.figure === chosen?.figure);
    return [
      el(
        "details",
        { "data-part": "figures", class: "section" },
        el("summary", {}, "Figures of the thesis"),
        el(
          "div",
          { class: "pills" },
          ...names.map((f) =>
            pill(
              f,
              f === chosen?.figure,
              () => show(presets.findIndex((p) => p.figure === f)),
              `figure ${f}`,
            ),
          ),
        ),
        ...(chosen
          ? [
              ...(panels.length > 1
                ? [
                    el(
                      "div",
                      { class: "pills panels" },
                      ...panels.map(([p, i]) =>
                        pill(p.panel, i === app.lessons.preset, () => show(i)),
                      ),
                    ),
                  ]
                : []),
              el("p", { class: "caption" }, chosen.caption),
            ]
          : []),
      ),
    ];
  }

  take() {
    const { app } = this;
    const copy = el(
      "button",
      {
        onclick: () =>
          navigator.clipboard?.writeText(location.href).then(() => {
            copy.textContent = "copied";
            setTimeout(() => {
              copy.textContent = "copy link";
            }, 1500);
          }),
      },
      "copy link",
    );
    return [
      el(
        "details",
        { "data-part": "take", class: "section" },
        el("summary", {}, "Export"),
        el(
          "div",
          { class: "pills" },
          el("button", { onclick: () => app.png() }, "PNG as seen"),
          ...presentButton(app),
          ...exportLinks(app.data.base, "field", () => app.query ?? ""),
          copy,
        ),
        el(
          "p",
          { class: "caption" },
          "The address of this page stores the view. Add ?hide=m1,m2,figures to hide controls.",
        ),
      ),
    ];
  }
}
