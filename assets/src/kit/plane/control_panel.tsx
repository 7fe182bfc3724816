// Panel next to the plane: loss and sliders, points, layers, figures, export.
import { signal } from "@preact/signals";
import type { Hyper, Parameter } from "../types.ts";
import type { Fields } from "./plane.ts";
import { div } from "../dom.ts";
import {
  Control,
  CopyLink,
  Disclosure,
  ExportLinks,
  FigureButtons,
  Hiding,
  Menu,
  Part,
  Pills,
  PointRows,
  PresentButtons,
  Section,
  Switches,
  mountPanel,
  settingOf,
} from "../panel/panel.tsx";
import type { Places } from "../panel/panel.tsx";
import { marginOf } from "./edit.ts";

const MU: Parameter = {
  name: "mu",
  symbol: "\\mu",
  low: -3,
  high: 3,
  step: 0.005,
  default: 0,
  help: "Normalised margin: energy of the unit equilateral triangle; m1 adapts to s, r and ρ",
};
const MARGINS = [
  { value: "normalised", text: "normalised margin μ" },
  { value: "raw", text: "margin m₁" },
];
const LAYERS = [
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
] as const;

// Return the panel: its element, `build` to render the state of the application, and `show` to
// follow its points.
export function controlPanel(app: Fields) {
  const side = div("panel"),
    placesOf = (): Places => {
      const { anchor, positive, negative, probe } = app.scene;
      return { anchor, positive, negative, probe, theme: app.theme };
    },
    places = signal(placesOf());
  let render: (() => void) | undefined;
  return {
    side,
    show() {
      places.value = placesOf();
    },
    build() {
      if (render) render();
      else
        render = mountPanel(side, () => (
          <Hiding hidden={app.hidden}>
            <Part name="loss">
              <LossSections app={app} />
            </Part>
            <Section name="points" title="Points">
              <PointRows places={places} {...pointActions(app)} />
              <div class="menus below-points">
                <SceneMenu app={app} label="snap" name="snap" then={() => app.edit.snap()} />
              </div>
            </Section>
            <Layers app={app} />
            <Figures app={app} />
            <Disclosure name="take" title="Export">
              <div class="pills">
                <FigureButtons save={(format) => app.save(format)} />
                <PresentButtons app={app} />
                <ExportLinks base={app.data.base} page="field" query={() => app.query ?? ""} />
                <CopyLink />
              </div>
              <p class="caption">
                The address of this page stores the view. Add ?hide=m1,m2,figures to hide controls.
              </p>
            </Disclosure>
          </Hiding>
        ));
    },
  };
}

function LossSections({ app }: { app: Fields }) {
  const { scene, hidden } = app,
    { losses } = app.schema,
    { title, controls } = losses[scene.loss],
    normalised = scene.margin === "normalised",
    choosesMargin =
      marginOf(app.schema, scene.loss).margin === "normalised" &&
      !hidden.has("margin") &&
      !hidden.has("m1");
  return (
    <>
      <section>
        <div class="headed">
          <h4>Loss</h4>
          {!hidden.has("reset") && (
            <button
              class="reset"
              title="Reset parameters, points and view"
              onClick={() => app.edit.reset()}
            >
              Reset
            </button>
          )}
        </div>
        {hidden.has("loss-menu") ? (
          <b>{title}</b>
        ) : (
          <Menu
            label="loss"
            offers={losses}
            value={scene.loss}
            onChange={(loss) => {
              app.lessons.preset = undefined;
              app.edit.put({ loss, ...marginOf(app.schema, loss) });
            }}
          />
        )}
      </section>
      <section class="sliders">
        {controls
          .filter((c) => !hidden.has(c.name))
          .map((c) => (normalised && c.name === "m1" ? MU : c))
          .filter((c) => !hidden.has(c.name))
          .map((c) => {
            const owner = (c === MU ? scene : scene.hyper) as Hyper;
            return (
              <Control
                key={c.name}
                schema={c}
                value={settingOf(owner, c)}
                onInput={(x) => {
                  app.touch();
                  owner[c.name] = x;
                  app.move();
                }}
                onRest={() => app.rest()}
              />
            );
          })}
        {!controls.length && <p class="caption">This loss has no parameters.</p>}
        {choosesMargin && (
          <Pills
            label="kind of margin"
            pills={MARGINS}
            value={scene.margin}
            onChange={(margin) => app.edit.put({ margin: margin as typeof scene.margin }, true)}
          />
        )}
      </section>
    </>
  );
}

const pointActions = (
  app: Fields,
): Pick<Parameters<typeof PointRows>[0], "onProbe" | "onMove"> => ({
  onProbe(name) {
    app.touch();
    app.scene.probe = name;
    app.requests.rescale();
    app.rest();
    app.explain.build();
  },
  onMove(name, axis, x) {
    app.touch();
    app.scene[name] = app.snapped(name, app.scene[name].with(axis, x));
    app.rest();
    return app.scene[name];
  },
});

const SceneMenu = ({
  app,
  label,
  name,
  then,
}: {
  app: Fields;
  label: string;
  name: "shade" | "lines" | "flow" | "snap";
  then?(): void;
}) => (
  <label class="menu">
    <span>{label}</span>
    <Menu
      label={label}
      offers={app.menus[name]}
      value={app.scene[name]}
      onChange={(value) => {
        app.touch();
        Object.assign(app.scene, { [name]: value });
        then?.();
        app.rest();
      }}
    />
  </label>
);

const Layers = ({ app }: { app: Fields }) => (
  <Section name="shown" title="Shown">
    <div class="menus">
      <SceneMenu app={app} label="colour" name="shade" then={() => app.requests.rescale(true)} />
      <SceneMenu app={app} label="equipotentials" name="lines" />
      <SceneMenu app={app} label="field" name="flow" />
    </div>
    <Switches
      shown={app.scene}
      rows={LAYERS}
      onChange={(name, on) => {
        app.touch();
        app.scene[name] = on;
        app.rest();
      }}
    />
  </Section>
);

// Figures of the thesis, and the panels of the one that is shown.
function Figures({ app }: { app: Fields }) {
  const { presets, plain } = app.schema,
    { lessons } = app,
    chosen = presets[lessons.preset ?? -1],
    figures = [...new Set(presets.map((p) => p.figure))],
    panels = presets.flatMap((p, i) =>
      p.figure === chosen?.figure ? [{ value: String(i), text: p.panel }] : [],
    );
  const show = (index: number) => {
    const { figure: _figure, panel: _panel, caption: _caption, ...scene } = presets[index];
    lessons.preset = index;
    lessons.situation = undefined;
    app.edit.put({ ...plain, ...scene });
    lessons.situations();
  };
  return (
    <Disclosure name="figures" title="Figures of the thesis" open>
      <Pills
        pills={figures.map((value) => ({ value, label: `figure ${value}` }))}
        value={chosen?.figure}
        onChange={(figure) => show(presets.findIndex((p) => p.figure === figure))}
      />
      {panels.length > 1 && (
        <Pills
          also="panels"
          pills={panels}
          value={String(lessons.preset)}
          onChange={(i) => show(Number(i))}
        />
      )}
      {chosen && <p class="caption">{chosen.caption}</p>}
    </Disclosure>
  );
}
