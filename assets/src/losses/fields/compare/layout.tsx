// Elements of the Compare page: presets, verdict, one card for each loss, the difference, options.
import type { Compare } from "./compare.tsx";
import type { Comparison } from "./types.ts";
import { useComputed } from "@preact/signals";
import {
  Foreign,
  Formula,
  Hiding,
  LossControls,
  LossMenu,
  Menu,
  Part,
  PointRows,
  PresetButtons,
  PresetCaption,
  Readouts,
  Section,
  Switches,
} from "../../../kit/panel/panel.tsx";
import { Exports } from "./export.tsx";
import { Judgement } from "./judgement.tsx";
import { rowsOf } from "./numbers.ts";
import { DifferenceScale, Meaning, PlaneScale, SHADES, shadeOf } from "./scales.tsx";

const FEWEST = 2,
  MOST = 4; // losses
const KINDS = [
  ["same", "The same loss"],
  ["different", "Not the same"],
] as const;
const SHOWN = [
  ["region", "active region", "Hatched: the loss is clamped, so the gradient is zero"],
  ["arrows", "force arrows", "Force on the moved point at each position"],
  [
    "landscape",
    "landscapes in 3-D",
    "Show both losses as surfaces, with marbles that follow the forces",
  ],
] as const;

export function Layout({ app }: { app: Compare }) {
  const { session, state } = app,
    { panels } = state;
  // The opening animation leaves the negative to the hand that comes near.
  const halt = ({ target }: Event) =>
    target instanceof Element && target.closest(".frame") && app.orbit.halt();
  return (
    <Hiding hidden={session.hidden}>
      <Part name="presets">
        <Presets app={app} />
      </Part>
      <Part name="verdict">
        <Judgement app={app} />
      </Part>
      <div class="stage" onPointerMoveCapture={halt} onPointerDownCapture={halt}>
        <div class="main">
          {app.landscape && <Foreign element={app.landscape} />}
          <div class="cards losses">
            {panels.map((_, k) => (
              <Card key={k} app={app} k={k} />
            ))}
          </div>
          <div class="bars foot">
            <Part name="panels">
              <button
                disabled={panels.length >= MOST}
                title="Add a plane with a copy of the last loss"
                onClick={() => insert(app, panels.length - 1)}
              >
                Add a loss
              </button>
            </Part>
            <PlaneScale app={app} />
          </div>
          <div class="notice">{app.notice}</div>
        </div>
        <div class="side panel">
          <div class="map">
            <div class="top">
              <PairMenu app={app} />
            </div>
            <Meaning app={app} state={{ ...state }} />
            <Foreign element={app.difference.figure.root} />
            <DifferenceScale app={app} />
          </div>
          <Section name="options" title="Shown">
            <Options app={app} />
          </Section>
          <Section name="points" title="Points (equal in all planes)">
            <PointRows
              places={app.places}
              onProbe={(probe) => app.change({ probe })}
              onMove={(name, axis, x) => {
                app.orbit.stop();
                state[name][axis] = x;
                app.rest();
              }}
            />
          </Section>
          <Section name="export" title="Export">
            <Exports app={app} />
          </Section>
        </div>
      </div>
    </Hiding>
  );
}

function Presets({ app }: { app: Compare }) {
  const offers = app.session.data.presets,
    presets = {
      offers,
      pressed: app.pressed,
      onPress: (i: number) => app.change(structuredClone(offers[i].comparison), i),
      otherwise: "Each button compares two losses. Then move a slider to see where they differ.",
    };
  return (
    <div class="preset-rows">
      {KINDS.flatMap(([kind, name]) => [
        <span key={name} class="row-name">
          {name}
        </span>,
        <div key={kind} class="pills">
          <PresetButtons {...presets} filter={(i) => offers[i].kind === kind} />
        </div>,
      ])}
      <PresetCaption {...presets} />
    </div>
  );
}

// Add a copy of loss k next to it, and compare the two.
function insert(app: Compare, k: number) {
  const { panels } = app.state;
  app.change({ panels: panels.toSpliced(k + 1, 0, structuredClone(panels[k])), pair: [k, k + 1] });
}

function remove(app: Compare, k: number) {
  const { panels, pair } = app.state,
    left = pair.filter((i) => i !== k).map((i) => (i > k ? i - 1 : i));
  app.change({ panels: panels.toSpliced(k, 1), pair: left.length === 2 ? left : [0, 1] });
}

function exchange(app: Compare, i: number, j: number) {
  const { panels } = app.state;
  app.change({ panels: panels.with(i, panels[j]).with(j, panels[i]) });
}

// Card of loss k.
function Card({ app, k }: { app: Compare; k: number }) {
  const { schema } = app.session,
    { panels } = app.state,
    state = panels[k],
    { title, latex } = schema.losses[state.loss];
  const actions = [
    ["exchange", "⇄", () => exchange(app, k, (k + 1) % panels.length), false],
    ["duplicate", <i class="copies" />, () => insert(app, k), panels.length >= MOST],
    ["remove", "×", () => remove(app, k), panels.length <= FEWEST],
  ] as const;
  return (
    <div class="card" role="group" aria-label={`loss ${k + 1}: ${title}`}>
      <div class="top">
        <span class="badge" aria-hidden="true">
          {k + 1}
        </span>
        <LossMenu
          schema={schema}
          state={state}
          label={`loss ${k + 1}`}
          onLoss={() => app.change({})}
        />
        <Part name="panels">
          {actions.map(([name, text, act, disabled]) => (
            <button
              key={name}
              aria-label={`${name} loss ${k + 1}`}
              title={`${name} this loss`}
              disabled={disabled}
              onClick={act}
            >
              {text}
            </button>
          ))}
        </Part>
      </div>
      <Formula latex={latex} />
      <Foreign element={app.planes[k].figure.root} />
      <Numbers app={app} k={k} />
      <LossControls
        schema={schema}
        state={state}
        onInput={() => {
          app.orbit.stop();
          app.pressed.value = null;
          app.move();
        }}
        onRest={() => app.rest()}
      />
    </div>
  );
}

function Numbers({ app, k }: { app: Compare; k: number }) {
  const rows = useComputed(() => rowsOf(app.answer.value?.panels[k]));
  return <Readouts rows={rows} />;
}

// Which losses are subtracted.
function PairMenu({ app }: { app: Compare }) {
  const { pair, panels } = app.state,
    offers = Object.fromEntries(panels.map((_, k) => [k, String(k + 1)]));
  const pick = (side: number) => (
    <Menu
      label={`${side ? "second" : "first"} loss of the difference`}
      offers={offers}
      value={pair[side]}
      onChange={(value) => {
        const next = pair.with(side, Number(value));
        app.change({ pair: next[0] === next[1] ? next.with(1 - side, pair[side]) : next });
      }}
    />
  );
  if (panels.length > 2)
    return (
      <>
        <strong>Difference: loss</strong>
        {pick(0)} − {pick(1)}
      </>
    );
  return (
    <>
      <strong>
        Difference: loss {pair[0] + 1} − {pair[1] + 1}
      </strong>
      <button class="wide" onClick={() => app.change({ pair: pair.toReversed() })}>
        reverse
      </button>
    </>
  );
}

// Menus and switches for the planes.
function Options({ app }: { app: Compare }) {
  const { state } = app;
  const shade = (value: string) => {
    const [what, clamp] = value.split(",");
    app.change({ shade: what as Comparison["shade"], clamp: clamp === "1" });
  };
  return (
    <div class="shown">
      <label>
        Colour
        <Menu label="colour" offers={SHADES} value={shadeOf(state)} onChange={shade} />
      </label>
      <Switches shown={state} rows={SHOWN} onChange={(key, on) => app.change({ [key]: on })} />
    </div>
  );
}
