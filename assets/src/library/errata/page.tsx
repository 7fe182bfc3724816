// Elements of a counter-example: the figure, its numbers, and the panel.
import type { Errata } from "./errata.ts";
import type { Gradient } from "./types.ts";
import { LETTER, POINTS } from "../../kit/colours.ts";
import { onward, tidy } from "../../kit/dom.ts";
import { Control, FigureButtons, Foreign, PointRows, Section } from "../../kit/panel/panel.tsx";

const number = (x: number | null) =>
  x === null ? "not finite" : Math.abs(x) >= 1e4 ? x.toExponential(2) : x.toFixed(4);
// Return a gradient as text.
export const vector = (g: Gradient) =>
  g.some((x) => x === null) ? "not finite" : `(${g.map((x) => tidy(x)).join(", ")})`;

export const Page = ({ app }: { app: Errata }) => (
  <div class="stage">
    <div class="left">
      <Foreign element={app.figure.root} />
      <Foreign element={app.figure.legend} />
      <p class="caption">
        Forces point the other way. The map shows the norm of printed minus true gradient over all
        three points, at each position of the ringed point.
      </p>
    </div>
    <div class="panel">
      <Gradients app={app} />
      <Parameters app={app} />
      <Section title="Points">
        <PointRows
          places={app.places}
          onProbe={(name) => app.setProbe(name)}
          onMove={(name, axis, x) => {
            app.scene[name][axis] = x;
            app.change("end");
          }}
        />
      </Section>
      <div class="pills">
        <button onClick={() => app.reset()}>Reset</button>
        <FieldsLink app={app} />
        <FigureButtons save={(format) => app.download(format)} />
        <button
          onClick={() => app.download("json")}
          title="Download the triplet and both gradients as JSON"
        >
          JSON
        </button>
      </div>
    </div>
  </div>
);

function FieldsLink({ app }: { app: Errata }) {
  const query = app.answer.value?.fields;
  return (
    <a
      class="button"
      href={query === undefined ? undefined : onward(`${app.session.data.base}fields`, query)}
    >
      Open in Fields
    </a>
  );
}

function Gradients({ app }: { app: Errata }) {
  const answer = app.answer.value,
    { sides } = app.session.data;
  return (
    <>
      <table>
        <caption>
          {answer &&
            (answer.difference === null
              ? "Gradients; the printed one is not finite here"
              : `Gradients; difference ${number(answer.difference)}`)}
        </caption>
        <thead>
          <tr>
            {["point", ...sides, "difference"].map((text) => (
              <th key={text} scope="col">
                {text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {POINTS.map((name, i) => (
            <tr key={name} class={answer && (answer.apart[i] ?? 1) > 1e-9 ? "differs" : ""}>
              <th scope="row">
                {LETTER[name]} {name}
              </th>
              <td>{answer && vector(answer.printed[i])}</td>
              <td>{answer && vector(answer.true[i])}</td>
              <td>{answer && number(answer.apart[i])}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="caption">
        {answer &&
          `${answer.energy}: ${answer.printed_energy === null ? "" : `printed ${number(answer.printed_energy)}, `}true ${number(answer.true_energy)}`}
      </p>
    </>
  );
}

function Parameters({ app }: { app: Errata }) {
  const { data, schema } = app.session,
    known = schema.losses[data.loss].controls.filter(({ name }) => data.sliders.includes(name));
  return (
    <Section title="Hyper-parameter">
      {known.map((control) => (
        <Control
          key={control.name}
          schema={control}
          value={app.scene.hyper[control.name]}
          onInput={(x) => {
            app.scene.hyper[control.name] = x;
            app.change("move");
          }}
          onRest={() => app.change("end")}
        />
      ))}
    </Section>
  );
}
