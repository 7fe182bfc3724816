// Charges page: the figure with its transport bar, curves, phase portrait, and the panel.
import type { Charges } from "./charges.ts";
import {
  FigureButtons,
  Foreign,
  Key,
  Live,
  LossFormula,
  LossPanel,
  MenuField,
  Notice,
  Panel,
  Part,
  Pills,
  PresentButtons,
  Readouts,
  Section,
  Transport,
  Control,
  clamp,
} from "../../kit/panel/panel.tsx";
import { commit, draft } from "./changes.ts";
import {
  SeedField,
  ShownSwitches,
  StateNumber,
  TimelinePresets,
} from "../../kit/timeline/fields.tsx";

const RATE = {
  name: "step size",
  symbol: "\\eta",
  help: "Distance that a point moves per step and unit force; for RMSprop and Adam, about the distance per step",
  low: 0.001,
  high: 1,
  log: true,
  step: 0.001,
  default: 0.05,
};
const SHOWN = [
  ["trails", "trails", "the last 40 steps"],
  ["circles", "class circles", "Circle around the mean of each class through its farthest point"],
  ["arrows", "force arrows", "Force F on each point; length 34 F / (F + 1) pixels"],
] as const;

export const Page = ({ app }: { app: Charges }) => (
  <>
    <TimelinePresets player={app.player} />
    <div class="stage three">
      <Figure app={app} />
      <Measures app={app} />
      <Controls app={app} />
    </div>
  </>
);

const Figure = ({ app }: { app: Charges }) => (
  <div class="left">
    <div
      class="frame"
      tabIndex={0}
      role="group"
      aria-label="the charges: space plays and pauses, left and right arrows step, home resets, comma and full stop choose a point, shift and arrows move it"
      ref={app.setFrame}
      onKeyDown={(e) => app.player.key(e)}
    >
      <canvas
        role="img"
        aria-label="charges"
        ref={app.setCanvas}
        onPointerDown={(e) => app.hand.drag(e)}
        onPointerMove={(e) => app.hand.hover(e)}
      />
    </div>
    <Transport player={app.player} unit="step" />
    <Readouts rows={app.readout} />
    <Notice text={app.player.view.notice} />
    <Live text={app.player.view.live} />
  </div>
);

const Measures = ({ app }: { app: Charges }) => (
  <div class="middle">
    <Foreign element={app.curves.whole} />
    <div>
      <h4>Phase portrait: density of triplets by their two distances</h4>
      <canvas
        class="portrait"
        role="img"
        aria-label="phase portrait"
        ref={app.portrait.setCanvas}
      />
      <div class="below">
        <Key kind="law" hidden={app.portrait.noOuter}>
          loss = 0
        </Key>
        <Key kind="dashed law" hidden={app.portrait.noInner}>
          upper clamp
        </Key>
        <Key kind="dotted">d(a, n) = d(a, p)</Key>
      </div>
      <p class="caption">{app.portrait.text}</p>
    </div>
  </div>
);

function Controls({ app }: { app: Charges }) {
  const { player } = app,
    { options, session, clock, changes } = player,
    { schema } = session,
    { limits } = options,
    { law } = changes.now;
  const rest = () => commit(player),
    setLaw = (key: "miner" | "optimiser" | "normalise" | "side", value: string) => {
      law[key] = value;
      rest();
    };
  const choose = (key: "miner" | "optimiser" | "normalise", label: string) => (
    <MenuField
      label={label}
      offers={options[key]}
      value={law[key]}
      onChange={(value) => setLaw(key, value)}
    />
  );
  const count = (key: "classes" | "per_class", label: string) => (
    <label>
      {label}
      <StateNumber player={player} name={key} label={label} range={[2, limits[key]]} />
    </label>
  );
  return (
    <Panel hidden={session.hidden}>
      <Part name="loss">
        <LossPanel
          schema={schema}
          state={law}
          onInput={() => draft(player)}
          onRest={rest}
          onLoss={rest}
        >
          <LossFormula loss={schema.losses[law.loss]} />
        </LossPanel>
      </Part>
      <Section name="motion" title="Motion">
        <div class="fields">
          {choose("miner", "triplets")}
          {choose("optimiser", "optimiser")}
          {choose("normalise", "plane")}
        </div>
        <div class="named">
          <span>{RATE.name}</span>
          <Control
            schema={RATE}
            value={law.step_size}
            onInput={(x) => {
              law.step_size = clamp(Number(x), ...limits.rate);
            }}
            onRest={rest}
          />
        </div>
        <Pills
          label="Which forces act"
          pills={Object.entries(options.side).map(([value, { help }]) => ({ value, title: help }))}
          value={law.side}
          onChange={(side) => setLaw("side", side)}
        />
      </Section>
      <Section name="start" title="Start">
        <div class="fields">
          <MenuField
            label="start"
            offers={options.start}
            value={clock.state.start}
            onChange={(start) => changes.restart({ start })}
          />
          {count("classes", "classes")}
          {count("per_class", "per class")}
          <SeedField player={player} />
        </div>
      </Section>
      <Section name="shown" title="Shown">
        <ShownSwitches app={app} rows={SHOWN} />
      </Section>
      <Section name="take" title="Export">
        <div class="pills">
          <PresentButtons app={session} />
          <FigureButtons save={(format) => app.save(format)} />
          <a class="button" data-kind="npz" download="" href={app.files.npz}>
            history (npz)
          </a>
          <a class="button" data-kind="json" download="" href={app.files.json}>
            history (JSON)
          </a>
        </div>
        <details>
          <summary>Python that repeats this</summary>
          <pre tabIndex={0}>{app.python}</pre>
        </details>
      </Section>
    </Panel>
  );
}
