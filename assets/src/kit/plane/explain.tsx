// Column of formulas: the loss, its current numbers, the force laws, the active region, margins
// with their derivation.
import { Fragment } from "preact";
import type { Setting } from "../types.ts";
import type { Fields } from "./plane.ts";
import type { Field, Margin, Region } from "./types.ts";
import { div, el, onward, stateOf, tidy } from "../dom.ts";
import { POINTS } from "../colours.ts";
import { Foreign, Formula, IntegerBox, Letter, Prose, mountPanel } from "../panel/panel.tsx";
import { chart, isNoForce, lawOf } from "./charts.tsx";

const LETTERS = { anchor: "A", positive: "P", negative: "N" };
const COLUMNS = ["", "pull A–P", "push A–N", "push P–N", "other", "sum x", "sum y"];
const MOST_BATCH = 2 ** 31;

// Head, values, and the rest are rendered apart: the head when the loss changes, the others about ten
// times a second while a point is dragged.
export class Explain {
  app: Fields;
  head = div("");
  values = el("p", { class: "values" });
  rest = el("div", { style: "display: contents" });
  side = div("explain", this.head, this.values, this.rest);
  cutBox = el("section", { hidden: true });
  laws = chart("forces against edge length");
  cut = chart("energy along the cut");
  margins = el("details", { class: "section", hidden: true });
  build: () => void; // shows another loss
  show: (() => void)[];

  field: Field | undefined;
  // values that Python sends at the end of a gesture
  region: Region | null = null;
  marginRows: Margin[] = [];

  constructor(app: Fields) {
    this.app = app;
    this.build = mountPanel(this.head, () => <Head app={app} />);
    this.show = [
      mountPanel(this.values, () => this.field && <Values app={app} field={this.field} />),
      mountPanel(this.rest, () => <Forces explain={this} />),
      mountPanel(this.margins, () => (
        <>
          <summary>Margins and balance</summary>
          <div>
            {this.marginRows.map((row, i) => (
              <MarginRow key={i} app={app} row={row} />
            ))}
          </div>
        </>
      )),
    ];
    mountPanel(this.cutBox, () => (
      <>
        <h4>Energy along the cut</h4>
        <Foreign element={this.cut} />
      </>
    ));
    this.margins.addEventListener("toggle", () => {
      if (this.margins.open) app.rest(false);
    });
  }

  // Show the numbers of a field.
  numbers(field: Field) {
    const { region, margins, has_margins: has } = field,
      { hidden } = this.app;
    this.field = field;
    if (region !== undefined) this.region = region;
    if (margins !== undefined) this.marginRows = margins;
    if (has !== undefined) this.margins.hidden = !has || hidden.has("margins") || hidden.has("m1");
    for (const show of this.show) show();
  }
}

function Head({ app: { schema, scene, data } }: { app: Fields }) {
  const { note } = data,
    loss = schema.losses[scene.loss];
  return (
    <>
      <h3>{loss.title}</h3>
      <p>{loss.sentence}</p>
      <Formula latex={loss.latex} />
      <p class="caption">{loss.source}</p>
      {note?.loss === scene.loss && (
        <p class="caption">
          {note.text} <a href={onward(`${data.base}studies`, note.query)}>All losses on Omniglot</a>
        </p>
      )}
    </>
  );
}

// Return how a loss follows from its energy E, and which triplets have no gradient.
// positive: E is above 0 for every triplet
// m2: upper clamp; null: none
export function clamping(positive: boolean, m2: number | null) {
  if (positive && m2 === null) return "The loss is E, which is above 0 for every triplet.";
  if (positive)
    return `The loss is E, clipped at ${tidy(m2)}; above, the gradient is 0. E is above 0 for every triplet.`;
  return m2 === null
    ? "The loss is E clipped at 0: only triplets with E > 0 have a gradient."
    : `The loss is E clipped to [0, ${tidy(m2)}]: outside this range the gradient is 0.`;
}

function Values({
  app: { scene, schema },
  field: { mu, positive, m2 },
}: {
  app: Fields;
  field: Field;
}) {
  const names: [string, Setting | undefined][] = schema.losses[scene.loss].controls.map((c) => [
    c.symbol,
    scene.hyper[c.name] ?? (c.name in scene.hyper ? "∞" : c.default),
  ]);
  if (mu !== null) names.push(["\\mu", mu]);
  return (
    <>
      {names.map(([latex, value], i) => (
        <Fragment key={latex}>
          {i ? ", " : ""}
          <i>
            <Letter latex={latex} />
          </i>
          {` = ${typeof value === "number" ? tidy(value) : value}`}
        </Fragment>
      ))}
      {names.length ? ". " : ""}
      {clamping(positive, m2)}
    </>
  );
}

function Forces({ explain: { field, region, laws, margins } }: { explain: Explain }) {
  return (
    <>
      <section>
        <h4>Pull and push by distance</h4>
        <Foreign element={laws} />
        <p class="caption">
          {field && (
            <>
              <b class="pull">● pull</b> along A–P, <Pushes field={field} />; markers: current
              distances
              {field.hit ? "." : `, hollow because this triplet is ${stateOf(field)}.`}
            </>
          )}
        </p>
      </section>
      <section>
        <h4>Forces along the edges and their sum</h4>
        <table class="numbers">{field && <Rows field={field} />}</table>
      </section>
      <div>{region && <ActiveRegion region={region} />}</div>
      <Foreign element={margins} />
    </>
  );
}

// Name the curves of the push, which may coincide; not every loss pushes along P–N.
function Pushes({ field }: { field: Field }) {
  const [an, pn] = [lawOf(field, "an"), lawOf(field, "pn")],
    isOne = an.every((v, i) => Math.abs(v - pn[i]) <= 1e-6 * Math.abs(v));
  if (isNoForce(pn))
    return (
      <>
        <b class="push">■ push</b> along A–N
      </>
    );
  return (
    <>
      <b class="push">■ push</b> along A–N {isOne ? "and" : "(solid),"} <b class="push">◆</b> along
      P–N {isOne ? "(one curve)" : "(dashed)"}
    </>
  );
}

const cellText = (x: number) =>
  Math.abs(x) < 5e-5 ? "0" : Math.abs(x) >= 1000 ? x.toExponential(2) : x.toFixed(3);

function Rows({ field: { strengths, residuals, forces } }: { field: Field }) {
  const { ap, an, pn } = strengths,
    along = { anchor: [ap, an, null], positive: [ap, null, pn], negative: [null, an, pn] };
  return (
    <>
      <tr>
        {COLUMNS.map((title) => (
          <th key={title} scope="col">
            {title}
          </th>
        ))}
      </tr>
      {POINTS.map((point, i) => (
        <tr key={point}>
          <th scope="row">{LETTERS[point]}</th>
          {[...along[point], Math.hypot(...residuals[i]), ...forces[i]].map((x, k) => (
            <td key={k}>{x === null ? "–" : cellText(x)}</td>
          ))}
        </tr>
      ))}
    </>
  );
}

const ActiveRegion = ({ region: { shape, area, latex, closed } }: { region: Region }) => (
  <section>
    <h4>Active region of the negative</h4>
    <p>
      <Prose text={shape} />
      {area === null ? "; unbounded." : `; area ${area.toPrecision(6)}.`}
    </p>
    {latex && <Formula latex={latex} />}
    <p class="caption">{closed ? "Closed form." : "Numerical integration."}</p>
  </section>
);

function MarginRow({ app, row }: { app: Fields; row: Margin }) {
  const box = (name: "B" | "C", label: string) => (
    <label>
      {name}{" "}
      <IntegerBox
        label={label}
        value={app.batch[name]}
        range={[2, MOST_BATCH]}
        onChange={(x) => {
          app.batch[name] = x;
          app.rest(false);
        }}
      />
    </label>
  );
  return (
    <div class="margin">
      {row.batch && (
        <div class="row batch">
          {box("B", "batch size B")}
          {box("C", "classes C")}
        </div>
      )}
      {row.error ? (
        <p class="caption">{row.error}</p>
      ) : (
        <button
          onClick={() => app.edit.put({ hyper: { ...app.scene.hyper, ...row.set }, margin: "raw" })}
        >
          {row.label}
        </button>
      )}
      {row.latex?.map((latex) => (
        <Formula key={latex} latex={latex} />
      ))}
      {row.note && <p class="caption">{row.note}</p>}
    </div>
  );
}
