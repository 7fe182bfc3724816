// Panel of Toy training.
import type { Toys } from "./toy_training.ts";
import type { Side } from "./types.ts";
import type { FigureFormat } from "../../kit/figure/file.ts";
import {
  Control,
  FigureButtons,
  LossFormula,
  LossPanel,
  Menu,
  MenuField,
  Panel,
  Part,
  Pills,
  PresentButtons,
  Section,
  Switch,
  clamp,
} from "../../kit/panel/panel.tsx";
import { save } from "../../kit/dom.ts";
import { fileOf } from "../../kit/figure/file.ts";
import { sheetOf } from "../../kit/figure/sheet.ts";
import { SeedField, StateNumber } from "../../kit/timeline/fields.tsx";
import { LETTERS } from "./names.ts";

const RATE = {
  name: "learning rate",
  symbol: "\\eta",
  help: "learning rate of both losses",
  low: 0.0001,
  high: 0.1,
  log: true,
  default: 0.005,
};
const WIDTH = 1400; // of a window in the exported figure, px
const DIMS = { 2: "2: plane", 3: "3: space" },
  IMAGE_DIMS = { ...DIMS, 64: "64: two principal components" };

export function Controls({ app }: { app: Toys }) {
  const { player, images } = app,
    { options, session, clock, changes } = player,
    { limits } = options,
    { state } = clock,
    { now } = changes;
  const count = (name: "classes" | "samples" | "hidden", label: string) => (
    <StateNumber player={player} name={name} label={label} range={limits[name]} />
  );
  const show = ([first, second]: Side[], both: boolean) => {
    if (!both) app.spare = structuredClone(second);
    changes.restart({ sides: both ? [first, app.spare ?? options.second] : [first] });
  };
  return (
    <Panel hidden={session.hidden}>
      <Part name="loss">
        {now.sides.map((side, i) => (
          <SideControls key={i} app={app} side={side} index={i} />
        ))}
      </Part>
      <Section name="pair">
        <Switch
          also="tickbox"
          title="Both start from the same weights and use the same batches"
          checked={state.sides.length === 2}
          onChange={(both) => show(now.sides, both)}
        >
          two losses side by side
        </Switch>
      </Section>
      <Section name="training" title="Training">
        <div class="named">
          <span>{RATE.name}</span>
          <Control
            schema={RATE}
            value={now.rate}
            onInput={(x) => {
              now.rate = clamp(Number(x), ...limits.rate);
            }}
            onRest={() => changes.commitSoon()}
          />
        </div>
        <div class="fields">
          <MenuField
            label="optimiser"
            offers={options.optimiser}
            value={state.optimiser}
            onChange={(optimiser) => changes.restart({ optimiser })}
          />
          <label title="Classes per batch and samples per class">
            batch
            <span class="batch">
              {count("classes", "classes per batch")} × {count("samples", "samples per class")}
            </span>
          </label>
        </div>
      </Section>
      <Section
        name="network"
        title={`Network: ${images ? options.images[state.data] : "linear, leaky ReLU, linear"}`}
      >
        <div class="fields">
          {!images && <label>hidden{count("hidden", "width of the hidden layer")}</label>}
          <MenuField
            label="output"
            offers={images ? IMAGE_DIMS : DIMS}
            value={state.dim}
            onChange={(dim) => changes.restart({ dim: Number(dim) })}
          />
        </div>
        <Switch
          also="tickbox"
          checked={state.normalize}
          onChange={(normalize) => changes.restart({ normalize })}
        >
          {state.dim === 2 ? "normalised, on the circle" : "normalised, on the sphere"}
        </Switch>
      </Section>
      <Section name="data" title="Data">
        <div class="fields">
          <MenuField
            label="data set"
            offers={options.data}
            value={state.data}
            onChange={(data) => useData(app, data)}
          />
          <MenuField
            label="shown"
            offers={options.split}
            value={state.split}
            onChange={(split) => showSplit(app, split)}
          />
          <SeedField player={player} />
        </div>
        <p class="caption">{options.data[state.data].help}</p>
      </Section>
      <Section name="take" title="Export">
        <div class="pills">
          <PresentButtons app={session} />
          <FigureButtons save={(format) => saveFigure(app, format)} />
        </div>
        <Runs app={app} />
      </Section>
    </Panel>
  );
}

// Loss, forces and pooling of a side. The pooling restarts training; its gate acts from the step
// shown.
function SideControls({ app, side, index }: { app: Toys; side: Side; index: number }) {
  const { options, changes } = app.player,
    letter = LETTERS[index],
    loss = app.schema.losses[side.loss],
    isSided = options.sided.includes(side.loss),
    commitSoon = () => changes.commitSoon();
  return (
    <div class={`group side${letter}`}>
      <LossPanel
        schema={app.schema}
        state={side}
        label={`loss ${letter}`}
        called={(name) => `${letter}: ${name}`}
        heading={
          <>
            <b class={`side${letter}`}>{letter}</b> minimises
          </>
        }
        onInput={() => {}}
        onRest={commitSoon}
        onLoss={() => {
          if (!options.sided.includes(side.loss)) side.moves = "both";
          changes.commit();
        }}
      >
        <details>
          <summary>formula</summary>
          <LossFormula loss={loss} />
        </details>
      </LossPanel>
      <Pills
        label={`forces of ${letter}`}
        pills={Object.entries(options.moves).map(([value, { help }]) => ({
          value,
          title: help,
          disabled: !isSided && value !== "both",
        }))}
        value={side.moves}
        onChange={(moves) => {
          side.moves = moves;
          changes.commit();
        }}
      />
      {app.images && (
        <label class="pooled">
          pools by
          <Menu
            label={`pooling ${letter}`}
            offers={options.poolings}
            value={side.pooling}
            onChange={(pooling) =>
              changes.restart({
                sides: changes.now.sides.map((s, k) => (k === index ? { ...s, pooling } : s)),
              })
            }
          />
        </label>
      )}
      {app.images &&
        options.gated.includes(side.pooling) &&
        options.gate.map((c) => (
          <Control
            key={c.name}
            schema={{ ...c, name: `${letter}: ${c.name}` }}
            value={side[c.name]}
            onInput={(x) => {
              side[c.name] = clamp(Number(x), c.low, c.high);
            }}
            onRest={commitSoon}
          />
        ))}
    </div>
  );
}

// Each side as a run of its own; follows the link.
function Runs({ app }: { app: Toys }) {
  const run = app.run.value,
    base = new URL(app.player.session.data.base, location.href);
  if (!run) return <div class="runs" />;
  const { toml, command, links, steps } = run;
  return (
    <div class="runs">
      {toml.map((text, i) => (
        <details key={i}>
          <summary>{`Train ${LETTERS[i]} as a run (${steps} ${steps === 1 ? "step" : "steps"})`}</summary>
          {app.clock.state.changes.length > 0 && (
            <p class="caption">
              The run uses the current settings from step 0, because a run cannot change its
              settings.
            </p>
          )}
          <pre tabIndex={0} data-run={LETTERS[i]}>
            {command[i]}
          </pre>
          <div class="pills">
            <button onClick={() => saveSpec(LETTERS[i], text)}>Spec, TOML</button>
            <a class="button" href={new URL(`settings?${links[i]}`, base).href}>
              Open on the Train page
            </a>
          </div>
        </details>
      ))}
    </div>
  );
}

const saveSpec = (letter: string, toml: string) =>
  save(`toy-${letter.toLowerCase()}.toml`, new Blob([toml], { type: "application/toml" }));

// Switch the data between images and vectors, with the settings of the first preset that uses them.
function useData({ player, clock, images }: Toys, data: string) {
  const { changes, options } = player,
    known = options.presets.find((p) => p.state.data === data);
  if (known && (images || data in options.images))
    changes.loadAndPlay({ ...known.state, seed: clock.state.seed });
  else changes.restart({ data });
}

// Show another split of the same steps.
const showSplit = ({ player, clock }: Toys, split: string) =>
  player.changes.loadAndPlay({ ...clock.state, split }, clock.at);

async function saveFigure(app: Toys, format: FigureFormat) {
  const { windows, clock, player } = app,
    { history, state } = clock,
    step = history.nearest(clock.at),
    titled = windows.map(
      ({ figure, side }) =>
        [
          figure,
          side < 0 ? "inputs" : `${LETTERS[side]}: ${app.name(side)}, step ${step}`,
        ] as const,
    );
  save(
    `toys-${state.data}-${state.seed}-${step}.${format}`,
    await fileOf(sheetOf(titled, WIDTH, player.theme), format),
  );
}
