// Panel of GAP vs GSP.
import type { GapOrGsp } from "./gap_vs_gsp.ts";
import type { Limit, Setting, Shown } from "./types.ts";
import type { FigureFormat } from "../../kit/figure/file.ts";
import { Control, FigureButtons, Panel, Section, clamp } from "../../kit/panel/panel.tsx";
import { save } from "../../kit/dom.ts";
import { fileOf } from "../../kit/figure/file.ts";
import { sheetOf } from "../../kit/figure/sheet.ts";
import { brief } from "../../kit/plot.ts";
import { SeedField, StateNumber, ShownSwitches } from "../../kit/timeline/fields.tsx";
import { SIDES } from "./history.ts";

const WIDTH = 920; // of a plane in the exported figure, px
const SHOWN = [
  ["hulls", "class hulls", "Convex hull of the tokens that count"],
  ["samples", "bags", "Pooled vector of each validation bag shown"],
  ["prototypes", "prototypes", "Prototypes of GSP, once they are placed"],
] as const satisfies [keyof Shown, string, string][];
const TAU = {
  name: "active from",
  symbol: "τ",
  help: "Minimum percentage of a class's pooling weight for a token to enter the hull of the class",
  low: 0.1,
  high: 12,
  step: 0.05,
  default: 5,
};

export function Controls({ app }: { app: GapOrGsp }) {
  const { player } = app,
    { options, changes, session, clock } = player,
    { hidden } = session,
    { now } = changes,
    { limits } = options,
    bound = (name: Setting, x: number) => clamp(x, ...limits[name]);
  // Slider of a setting that can change during training, in units of `unit`; the help text starts
  // with its name and a colon.
  const running = (name: Setting, symbol: string, help: string, spec: Limit, unit = 1) => {
    const [caption] = help.split(":");
    return (
      !hidden.has(name) && (
        <div class="named">
          <span title={help}>{caption}</span>
          <Control
            schema={{ name: caption, symbol, help, ...spec }}
            value={now[name] / unit}
            onInput={(x) => {
              now[name] = bound(name, Number((Number(x) * unit).toPrecision(6)));
            }}
            onRest={() => changes.commit()}
          />
        </div>
      )
    );
  };
  const count = (name: Setting, label: string, title: string, caption: string) =>
    !hidden.has(name) && (
      <label class="field">
        {caption}
        <StateNumber player={player} name={name} label={label} range={limits[name]} title={title} />
      </label>
    );
  return (
    <Panel hidden={hidden}>
      <Section name="pooling" title="Gate of GSP">
        {running(
          "mu",
          "μ",
          "Pooled share: share of each bag's mass that is pooled; at 1, GSP equals GAP",
          { low: 0.05, high: 1, step: 0.01 },
        )}
        {running(
          "epsilon",
          "ε",
          "Gate hardness: large values select only tokens near a prototype",
          { low: 0.5, high: 200, log: true },
        )}
        {count(
          "prototypes",
          "prototypes",
          "Learned points to which the gate compares tokens; a new number restarts training",
          "prototypes m",
        )}
        {count(
          "warmup",
          "warm-up",
          `Steps of plain averaging before the prototypes are chosen from ${options.memory} pooled vectors`,
          "warm-up, steps",
        )}
      </Section>
      <Section name="training" title="Training (both sides)">
        {running(
          "rate",
          "η",
          "Learning rate: of Adam, in 10⁻⁴",
          { low: 0.1, high: 100, log: true },
          1e-4,
        )}
        {running(
          "margin",
          "m⁻",
          "Margin: the contrastive loss pushes bags of different classes apart up to this distance",
          { low: 0.02, high: 0.8, step: 0.005 },
        )}
        {!hidden.has("seed") && (
          <SeedField player={player} title="Seed of the initial tokens, the bags and their order" />
        )}
      </Section>
      <Section name="shown" title="Shown">
        {!hidden.has("tau") && (
          <div class="named">
            <span>minimum weight of a used token, %</span>
            <Control
              schema={TAU}
              value={100 * clock.state.tau}
              onInput={(x) => {
                app.tau = bound("tau", Number(x) / 100);
              }}
              onRest={() => showHulls(player, app.tau)}
            />
          </div>
        )}
        <ShownSwitches app={app} rows={SHOWN} />
      </Section>
      <Section name="take" title="Export">
        <Exports app={app} />
      </Section>
    </Panel>
  );
}

// Files of the state and the step shown, which follow the link.
function Exports({ app }: { app: GapOrGsp }) {
  const tomls = app.tomls.value;
  return (
    <>
      <div class="pills">
        <FigureButtons save={(format) => saveFigure(app, format)} />
        <a class="button" download="" href={app.player.address.file("curves.csv")}>
          Curves, CSV
        </a>
        {SIDES.map((side) => (
          <a
            key={side}
            class="button"
            download=""
            href={app.player.address.file(`tokens-${side}.toml`)}
          >
            {side.toUpperCase()}, TOML
          </a>
        ))}
      </div>
      <details>
        <summary>Open as runs</summary>
        <p class="caption">Spec files with the current settings, for the command line:</p>
        <pre tabIndex={0} aria-label="command line">
          {SIDES.map((side) => `python -m dmlcore train tokens-${side}.toml`).join("\n")}
        </pre>
        {SIDES.map((side) => (
          <pre key={side} tabIndex={0} aria-label={`${side.toUpperCase()} as TOML`}>
            {tomls[side]}
          </pre>
        ))}
      </details>
    </>
  );
}

// Show hulls for another threshold; the training runs stay the same.
function showHulls({ clock, changes, playback }: GapOrGsp["player"], tau: number) {
  const { at, playing, state } = clock;
  if (tau === state.tau) return;
  changes.load({ ...state, tau }, at);
  if (playing) playback.play();
}

async function saveFigure({ planes, frame, clock, player }: GapOrGsp, format: FigureFormat) {
  if (!frame) return;
  const { at } = clock;
  const titled = planes.map(
    ({ figure, side }) =>
      [
        figure,
        `${side.toUpperCase()}, step ${at}: MAP@R ${brief(frame[side].held.map_at_r)}`,
      ] as const,
  );
  save(`gap-vs-gsp-${at}.${format}`, await fileOf(sheetOf(titled, WIDTH, player.theme), format));
}
