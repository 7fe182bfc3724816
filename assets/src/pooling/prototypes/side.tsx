// Panel of the Prototypes page.
import type { PartProps } from "./page.tsx";
import type { Shows } from "./types.ts";
import type { Theme } from "../../kit/types.ts";
import {
  Control,
  ExportLinks,
  Menu,
  Panel,
  Part,
  Pills,
  Section,
  Switches,
  clamp,
} from "../../kit/panel/panel.tsx";
import { CLASS, DASHES, SHAPES } from "./draw.ts";
import { describeFeatures } from "./words.ts";

const SHOWN: [keyof Shows, string][] = [
  ["features", "features"],
  ["patches", "patches"],
  ["hulls", "hulls"],
  ["averages", "averages"],
];

export const Side = ({ app }: PartProps) => (
  <Panel hidden={app.session.hidden}>
    <Section name="source" title="Local features of">
      <Source app={app} />
    </Section>
    <Section title="Prototypes">
      <Sliders app={app} />
    </Section>
    <Section name="weights" title="Weights">
      <Weights app={app} />
    </Section>
    <Section
      name="classes"
      title={`Classes with a hull (at most ${app.session.data.limits.shown})`}
    >
      <Hulls app={app} />
    </Section>
    <Section name="shown" title="Shown">
      <Shown app={app} />
    </Section>
    <Section name="take" title="Export">
      <div class="pills">
        <button onClick={() => app.savePng()}>Figure, PNG</button>
        <ExportLinks
          base={app.session.data.base}
          page="prototypes"
          query={() => app.session.query}
          formats={{ npz: "arrays (npz)" }}
        />
      </div>
    </Section>
  </Panel>
);

function Source({ app }: PartProps) {
  const plane = app.plane.value;
  return (
    <>
      <Menu
        label="source"
        offers={app.session.data.sources}
        value={app.view.value.source}
        onChange={(source) => app.setSource(source)}
      />
      <p class="caption">{plane && describeFeatures(plane)}</p>
    </>
  );
}

function Sliders({ app }: PartProps) {
  const { limits } = app.session.data,
    most = app.plane.value?.most ?? 64,
    view = app.view.value;
  const rows = [
    [
      "prototypes",
      {
        name: "prototypes",
        symbol: "m",
        help: "Chosen by greedy k-centre; more prototypes make smaller cells",
        low: limits.prototypes[0],
        high: limits.prototypes[1],
        step: 1,
      },
      "number of prototypes",
    ],
    [
      "per_class",
      {
        name: "images per class",
        symbol: "N",
        help: "Number of images per class whose local features are used",
        low: 1,
        high: most,
        step: 1,
      },
      "images per class",
    ],
    [
      "tau",
      {
        name: "tau",
        symbol: "\\tau",
        help: "A prototype is active for a class if its mean share exceeds τ/m; at 0, a single feature is enough",
        low: 0,
        high: limits.tau[1],
        step: 0.05,
      },
      "active above τ / m",
    ],
  ] as const;
  return (
    <>
      {rows.map(([key, schema, title]) => (
        <Part key={key} name={key}>
          <Part name={schema.name}>
            <label class="named">{title}</label>
            <Control
              schema={schema}
              value={view[key]}
              onInput={(x) => {
                const value = schema.step === 1 ? Math.round(Number(x)) : Number(x);
                app.ask({ [key]: clamp(value, schema.low, schema.high) });
              }}
              onRest={() => app.ask()}
            />
          </Part>
        </Part>
      ))}
    </>
  );
}

function Weights({ app }: PartProps) {
  const isWeighed = app.plane.value?.weighed ?? false,
    help = "Weights of the pooling of the run",
    without = "Only for runs whose pooling weights local features";
  return (
    <Pills
      label="weights of the features"
      pills={[
        { value: "uniform", text: "uniform (GAP)", title: "Each feature has weight 1/n" },
        {
          value: "pooling",
          text: "the run's pooling",
          title: isWeighed ? help : without,
          disabled: !isWeighed,
        },
      ]}
      value={app.view.value.weights}
      onChange={(weights) => app.ask({ weights: weights as "uniform" | "pooling" })}
    />
  );
}

function Hulls({ app }: PartProps) {
  const { shown } = app.view.value;
  return (
    <div class="pills" role="group" aria-label="classes with hulls">
      {app.plane.value?.classes.map((name, c) => (
        <button key={c} aria-pressed={shown.includes(c)} onClick={() => app.toggle(c)}>
          {shown.includes(c) && <Swatch slot={shown.indexOf(c)} theme={app.session.theme.value} />}
          {name}
        </button>
      ))}
    </div>
  );
}

const SWATCHES: Record<string, string> = {
  circle: "M8.6 6a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0 -8.8 0z",
  square: "M9.3 2.3h7.4v7.4h-7.4z",
  triangle: "M13 1.2L17.4 9.3H8.6z",
};

/** Line and mark of a shown class; `slot`: its place among those shown, from 0. */
export const Swatch = ({ slot, theme }: { slot: number; theme: Theme }) => (
  <svg
    class="swatch-line"
    viewBox="0 0 26 12"
    aria-hidden="true"
    style={`color: ${CLASS[theme][slot]}`}
  >
    <path
      d="M0 6H26"
      stroke="currentColor"
      stroke-width="2"
      stroke-dasharray={DASHES[slot].join()}
    />
    <path d={SWATCHES[SHAPES[slot]]} fill="currentColor" />
  </svg>
);

const Shown = ({ app }: PartProps) => (
  <Switches shown={app.shows.value} rows={SHOWN} onChange={(key, on) => app.setShows(key, on)} />
);
