// Elements of the Sphere page: surface, states, figures, legend, numbers, and the panel.
import type { Sphere } from "./sphere.tsx";
import type { On } from "./types.ts";
import { useComputed } from "@preact/signals";
import { POINTS } from "../../../kit/colours.ts";
import { FORMATS, themedQuery } from "../../../kit/export.ts";
import { Ramp } from "../../../kit/figure/legend.tsx";
import { SCALES } from "../../../kit/figure/raster.ts";
import {
  ExportLinks,
  Foreign,
  Hiding,
  Key,
  LossControls,
  LossMenu,
  Part,
  PointRows,
  PresentButtons,
  PresetButtons,
  PresetCaption,
  Readouts,
  Section,
  Switches,
  Text,
} from "../../../kit/panel/panel.tsx";
import { saveFigures } from "./figures.ts";
import { forceTexts } from "./numbers.ts";

const SURFACES: [On, string][] = [
  ["sphere", "Sphere"],
  ["circle", "Circle"],
];
const SHOWN = [
  ["region", "active region", "Hatched: the loss is clamped, so the gradient is zero"],
  ["arrows", "force arrows", "Tangential force on the moved point at each position"],
  ["radial", "radial parts", "Radial component of each force, which normalisation removes"],
] as const;
const COLUMNS = [
  ["tangential", "tangential component, which moves the point"],
  ["radial", "radial component (outward positive), which normalisation removes"],
  ["removed", "radial share of the squared force"],
] as const;

export function Layout({ app }: { app: Sphere }) {
  const { scene, session } = app,
    sphere = scene.on === "sphere";
  const states = {
    offers: session.data.states,
    pressed: app.pressed,
    onPress: (i: number) => app.showState(i),
    filter: (i: number) => Boolean(session.data.states[i][scene.on]),
  };
  return (
    <Hiding hidden={session.hidden}>
      <div class="stage">
        <div class="left">
          <div class="top">
            <div class="switch" role="group" aria-label="surface">
              {SURFACES.map(([on, text]) => (
                <button
                  key={on}
                  aria-pressed={scene.on === on}
                  onClick={() => app.change({ on }, null)}
                >
                  {text}
                </button>
              ))}
            </div>
            <Part name="presets">
              <div class="pills" role="group" aria-label="states">
                <PresetButtons {...states} />
              </div>
            </Part>
          </div>
          <div
            class={`views ${sphere ? "globe" : "circle"}`}
            onPointerMove={() => app.turning.greeting && app.touch()}
          >
            {app.figures.map((figure, i) => (
              <Foreign key={scene.on + i} element={figure.root} />
            ))}
          </div>
          <PresetCaption {...states} />
          <Legend app={app} on={scene.on} radial={scene.radial} />
          <div class="numbers">
            <Readouts rows={app.rows} />
            <Forces app={app} />
          </div>
          <div class="notice">{app.notice}</div>
        </div>
        <Controls app={app} />
      </div>
    </Hiding>
  );
}

function Legend({ app, on, radial }: { app: Sphere; on: On; radial: boolean }) {
  const scale = useComputed(() => app.answer.value?.scale ?? 0),
    unclamped = useComputed(() => (app.answer.value?.m2 ?? null) === null),
    theme = app.session.theme.value;
  return (
    <div class="below">
      <span class="bar">
        <Ramp
          colour={SCALES[theme].ramp}
          low="loss 0"
          high={`≥ ${Number(scale.value.toPrecision(3))}`}
          theme={theme}
        />
      </span>
      <Key>loss = 0</Key>
      <Key kind="dashed" hidden={unclamped}>
        upper clamp
      </Key>
      <Key kind="hatched">no force</Key>
      <Key kind="dotted" hidden={!radial}>
        radial, removed
      </Key>
      <Key kind="hollow" hidden={on === "circle"}>
        behind the sphere
      </Key>
      <Key kind="sweep" hidden={on === "sphere"}>
        what the ring shows
      </Key>
    </div>
  );
}

const Forces = ({ app }: { app: Sphere }) => (
  <table aria-label="forces on the three points">
    <tbody>
      <tr>
        <th>force on</th>
        {COLUMNS.map(([name, title]) => (
          <th key={name} title={title}>
            {name}
          </th>
        ))}
      </tr>
      {POINTS.map((point, i) => (
        <tr key={point}>
          <th scope="row">{point}</th>
          {COLUMNS.map(([name], k) => (
            <td key={name} data-readout={k < 2 ? `${name} ${point}` : undefined}>
              <Text read={() => forceTexts(app.answer.value, i)[k]} />
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);

function Controls({ app }: { app: Sphere }) {
  const { scene, session } = app,
    { schema, data } = session;
  return (
    <div class="panel">
      <Part name="loss">
        <LossMenu schema={schema} state={scene} onLoss={() => app.change({})} />
      </Part>
      <LossControls
        schema={schema}
        state={scene}
        onInput={() => {
          app.touch();
          app.move();
        }}
        onRest={() => app.rest()}
      />
      <Section name="points" title="Points">
        <PointRows
          key={scene.on}
          places={app.places}
          axes={scene.on === "sphere" ? ["longitude °", "latitude °"] : ["angle °"]}
          space={scene.on}
          reach={3600}
          onProbe={(probe) => app.change({ probe })}
          onMove={(name, axis, x) => {
            app.touch();
            app.moveTo(name, app.scene[name].with(axis, x));
            app.rest();
            return app.scene[name];
          }}
        />
      </Section>
      <Section name="shown" title="Shown">
        <Switches shown={scene} rows={SHOWN} onChange={(key, on) => app.change({ [key]: on })} />
      </Section>
      <Section name="take" title="Export">
        <div class="pills">
          <PresentButtons app={session} />
          <button onClick={() => saveFigures(app)} title="Save the figure at twice its size">
            PNG
          </button>
          <ExportLinks
            base={data.base}
            page="sphere"
            formats={{ svg: "SVG", pdf: "PDF", ...FORMATS }} // no PDF as seen: svg2pdf.js has no transparent gradients
            query={() => themedQuery(app.answer.value?.link ?? "", session.theme.value)}
          />
        </div>
      </Section>
    </div>
  );
}
