// Panel of the Transport page: the problem, its solution in numbers, and exports.
import type { PartProps } from "./page.tsx";
import type { TransportAnswer } from "./types.ts";
import { Control, ExportLinks, Panel, Section, clamp, useHidden } from "../../kit/panel/panel.tsx";
import { plain } from "./words.ts";

// Parameters: name, symbol, title, help, and the scale of the slider.
const PARAMETERS = [
  ["mu", "\\mu", "share pooled", "Transported mass: share of the map to pool", { step: 0.01 }],
  [
    "epsilon",
    "\\epsilon",
    "hardness of the gate",
    "Inverse temperature; large values select hard",
    { log: true },
  ],
  [
    "sweeps",
    "K",
    "published sweeps",
    "Sweeps of the published iteration; they affect only the convergence chart",
    { log: true },
  ],
] as const;
const FILES = {
  svg: "SVG",
  pdf: "PDF",
  png: "PNG",
  npz: "arrays (npz)",
  json: "arrays (JSON)",
  py: "Python",
};

export const Side = ({ app }: PartProps) => (
  <Panel hidden={app.session.hidden}>
    <Problem app={app} />
    <Section title="Share of the weight on the informative pixels, by ε">
      <Table app={app} />
    </Section>
    <Section title="Solution">
      <Numbers app={app} />
    </Section>
    <Notes app={app} />
    {!app.session.hidden.has("export") && (
      <Section name="take" title="Export">
        <div class="pills">
          <ExportLinks
            base={app.session.data.base}
            page="transport"
            query={() =>
              `${app.session.query}${app.session.theme.value === "dark" ? "&dark=1" : ""}`
            }
            formats={FILES}
          />
        </div>
      </Section>
    )}
  </Panel>
);

function Problem({ app }: PartProps) {
  const { limits } = app.session.data.options,
    { editor } = app,
    hidden = useHidden();
  return (
    <Section title="Problem">
      {PARAMETERS.filter(([name]) => !hidden.has(name)).map(
        ([name, symbol, title, help, scale]) => {
          const [low, high] = limits[name],
            round = name === "sweeps" ? Math.round : (x: number) => x;
          return (
            <div class="named" key={name}>
              <span title={help}>{title}</span>
              <Control
                schema={{ name, symbol, help, low, high, ...scale }}
                value={editor.state[name]}
                onInput={(x) => editor.set(name, round(clamp(Number(x), low, high)))}
                onRest={() => app.changed(true)}
              />
            </div>
          );
        },
      )}
    </Section>
  );
}

function Table({ app }: PartProps) {
  const { answer } = app.shown.value;
  return (
    <div class="table">
      {app.session.data.options.table.map((epsilon, i) => (
        <button
          key={epsilon}
          data-epsilon={epsilon}
          title={`epsilon = ${epsilon}`}
          aria-pressed={answer?.state.epsilon === epsilon}
          onClick={() => {
            app.setEpsilon(epsilon);
            app.changed(true);
          }}
        >
          ε {epsilon}
          <b>{answer?.table[i][1].toFixed(3)}</b>
        </button>
      ))}
    </div>
  );
}

// Numbers of the solution: name, label, help, text.
const NUMBERS: [string, string, string, (a: TransportAnswer) => string][] = [
  [
    "bias",
    "bias a*",
    "The bias at which the mean gate equals μ",
    ({ bias }) => (bias === null ? "∞" : plain(bias)),
  ],
  [
    "r",
    "rate r",
    "Factor by which a sweep reduces a small error: r = 1 − k/μ",
    ({ r }) => plain(r),
  ],
  ["k", "k", "Mean of s (1 − s)", ({ k }) => plain(k)],
  [
    "needed",
    "sweeps to 1e-6",
    "Published sweeps until the relative error of every pixel's mass is at most 1e-6",
    ({ needed, query, most_sweeps }) =>
      String(needed ?? (query === undefined ? "…" : `> ${most_sweeps}`)),
  ],
  [
    "newton_steps",
    "Newton steps",
    "Newton steps to machine precision",
    ({ newton_steps }) => String(newton_steps),
  ],
  [
    "error",
    "error after K",
    "Largest relative deviation of a pixel's mass after K sweeps",
    ({ error }) => plain(error),
  ],
  [
    "swept_sum",
    "sum of the weights after K sweeps",
    "Sum of the weights from ρ after K sweeps; 1 once converged",
    ({ swept_sum }) => swept_sum.toFixed(4),
  ],
];

function Numbers({ app }: PartProps) {
  const { answer } = app.shown.value;
  return (
    <div class="numbers">
      {NUMBERS.map(([name, label, help, text]) => (
        <div key={name} title={help}>
          <span>{label}</span>
          <b data-readout={name}>{answer && text(answer)}</b>
        </div>
      ))}
    </div>
  );
}

function Notes({ app }: PartProps) {
  const notes = app.shown.value.answer?.notes ?? [];
  return (
    <div class="notes" hidden={!notes.length}>
      {notes.map((text) => (
        <p class="caption" key={text}>
          {text}
        </p>
      ))}
    </div>
  );
}
