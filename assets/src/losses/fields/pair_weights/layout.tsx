// Elements of the Pair weights page: presets, both losses with their maps, options, triplet, exports.
import type { PairWeights } from "./pair_weights.tsx";
import type { PairWeightsAnswer, View } from "./types.ts";
import { Ramp } from "../../../kit/figure/legend.tsx";
import {
  Control,
  ExportLinks,
  FigureButtons,
  Foreign,
  Formula,
  Hiding,
  Key,
  LossControls,
  LossMenu,
  MenuField,
  Part,
  PresetButtons,
  PresetCaption,
  Section,
  ShareCard,
} from "../../../kit/panel/panel.tsx";
import { fileOf } from "../../../kit/figure/file.ts";
import { sheetOf } from "../../../kit/figure/sheet.ts";
import { SCALES } from "../../../kit/figure/raster.ts";
import { themedQuery } from "../../../kit/export.ts";
import { CardNumbers, TripletNumbers, WeightName } from "./numbers.tsx";

const RIVAL = {
  name: "S_pn",
  symbol: "S_pn",
  help: "similarity of negative and positive",
  low: -0.99,
  high: 0.99,
  step: 0.01,
  default: 0,
  optional: false,
} as const;
const OPTIONS = [
  ["weight", "weight of"],
  ["by", "as"],
  ["scale", "colour"],
  ["rival", "N lies"],
] as const;

export function Layout({ app }: { app: PairWeights }) {
  const { session, pressed } = app;
  const presets = {
    offers: session.data.slides,
    pressed,
    onPress: (i: number) => app.change(structuredClone(session.data.slides[i].state), i),
    otherwise: "Each button compares two losses. Then move a slider or point at a map.",
  };
  return (
    <Hiding hidden={session.hidden}>
      <Part name="presets">
        <div class="slides">
          <div class="pills">
            <PresetButtons {...presets} />
          </div>
          <PresetCaption {...presets} />
        </div>
      </Part>
      <div class="stage">
        <div class="main">
          <div class="below">
            <Scale app={app} />
            <Key>loss = 0</Key>
            <Key kind="dashed">upper clamp</Key>
            <Key kind="hatched">no such triplet</Key>
            <Key kind="dotted">equally similar</Key>
          </div>
          <div class="cards losses">
            {app.view.panels.map((_, k) => (
              <Card key={k} app={app} k={k} />
            ))}
          </div>
          <div class="notice">{app.notice}</div>
        </div>
        <div class="side panel">
          <Options app={app} />
          <section>
            <h4>The triplet as seen from its anchor</h4>
            <Foreign element={app.figures[2].root} />
            <TripletNumbers app={app} />
            <p class="caption">Distance from the centre is the angle to A.</p>
          </section>
          <Section name="export" title="Export">
            <div class="pills">
              <ShareCard app={session} image={() => plain(app)} />
              <FigureButtons save={(format) => app.save(format)} />
              <ExportLinks
                base={session.data.base}
                page="pair_weights"
                query={() => themedQuery(session.query, session.theme.value)}
              />
            </div>
          </Section>
        </div>
      </div>
    </Hiding>
  );
}

// Return both maps side by side.
const plain = ({ figures, session }: PairWeights) =>
  fileOf(
    sheetOf(
      figures.slice(0, 2).map((figure) => [figure, ""] as const),
      640,
      session.theme.value,
    ),
    "png",
  );

// Card of loss k.
function Card({ app, k }: { app: PairWeights; k: number }) {
  const { schema } = app.session,
    state = app.view.panels[k],
    { title, latex } = schema.losses[state.loss];
  return (
    <div class="card" role="group" aria-label={`loss ${k + 1}: ${title}`}>
      <LossMenu
        schema={schema}
        state={state}
        label={`loss ${k + 1}`}
        onLoss={() => app.change({})}
      />
      <Formula latex={latex} />
      <Foreign element={app.figures[k].root} />
      <CardNumbers app={app} k={k} />
      <LossControls
        schema={schema}
        state={state}
        onInput={() => app.move()}
        onRest={() => app.rest()}
      />
    </div>
  );
}

// Menus and switches for the maps.
function Options({ app }: { app: PairWeights }) {
  const { view, session } = app;
  return (
    <div class="options">
      <h4>Shown</h4>
      {OPTIONS.map(([name, label]) => (
        <Part key={name} name={name}>
          <MenuField
            label={label}
            offers={session.data.menus[name]}
            value={view[name]}
            onChange={(value) => app.change({ [name]: value } as Partial<View>)}
          />
        </Part>
      ))}
      {view.rival === "fixed" && (
        <Part name="pn">
          <Control
            schema={RIVAL}
            value={view.pn}
            onInput={(x) => app.setRival(x)}
            onRest={() => app.rest()}
          />
        </Part>
      )}
    </div>
  );
}

// Scale of colours, with what its ends mean.
function Scale({ app }: { app: PairWeights }) {
  const maps = app.maps.value;
  return (
    <span class="bar">
      <span>
        <WeightName by={app.view.by} pair={app.view.weight} />
      </span>
      {maps && <Ramp {...scaleOf(app, maps)} theme={app.session.theme.value} />}
    </span>
  );
}

function scaleOf({ view, session }: PairWeights, { signed, top }: PairWeightsAnswer) {
  const most = Number(top.toPrecision(3)),
    [attracts, repels] = view.by === "S" ? ["attracts", "repels"] : ["repels", "attracts"];
  return {
    colour: SCALES[session.theme.value][signed ? "signed" : "ramp"],
    low: signed ? `${attracts} ≤ −${most}` : "0",
    high: signed ? `≥ +${most} ${repels}` : `≥ ${most}`,
  };
}
