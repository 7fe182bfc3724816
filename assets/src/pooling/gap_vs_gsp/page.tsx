// GAP vs GSP page: both planes, transport bar, conclusion, classes, curves, and the panel.
import type { Signal } from "@preact/signals";
import type { GapOrGsp } from "./gap_vs_gsp.ts";
import type { Measure, Side } from "./types.ts";
import type { PlaneFigure } from "./plane.ts";
import {
  Foreign,
  Live,
  Notice,
  PresetButtons,
  PresetCaption,
  Transport,
} from "../../kit/panel/panel.tsx";
import { Controls } from "./controls.tsx";
import { MEASURES } from "./curves.ts";
import { colourOf } from "./draw.ts";
import { SIDES } from "./history.ts";
import { TITLES } from "./plane.ts";
import { Signs } from "./signs.tsx";

export function Page({ app }: { app: GapOrGsp }) {
  const { player } = app,
    { options, view, session, changes } = player;
  const presets = {
    offers: options.presets,
    pressed: view.pressed,
    onPress: (i: number) => changes.preset(i),
    otherwise: options.sentence,
  };
  return (
    <>
      {!session.hidden.has("presets") && (
        <div class="try">
          <small>Try</small>
          <PresetButtons {...presets} />
        </div>
      )}
      <PresetCaption {...presets} />
      <div class="stage">
        <div class="main">
          <div
            class="pairing"
            tabIndex={0}
            role="group"
            aria-label="both training runs: space plays and pauses, left and right arrows step, home goes to the start, end to the last step, comma and full stop choose a class, escape none"
            onKeyDown={(e) => player.key(e)}
          >
            {app.planes.map((plane) => (
              <Plane key={plane.side} app={app} plane={plane} />
            ))}
          </div>
          <Transport player={player} unit="step" />
          <Foreign element={app.story.whole} />
          <Notice text={view.notice} />
          <Chips app={app} />
          <Words app={app} />
          {!session.hidden.has("legend") && <Signs theme={player.theme} bound={options.bound} />}
          <Live text={view.live} />
          <Foreign element={app.curves.whole} />
          <p class="caption">
            Upright line: the step shown; drag it. Dotted: the prototypes are placed, or a setting
            changes.
          </p>
        </div>
        <Controls app={app} />
      </div>
    </>
  );
}

// A component of its own, because one with the text of a signal is rendered by that signal alone.
const Words = ({ app }: { app: GapOrGsp }) => <p class="caption about">{app.words}</p>;

const Plane = ({ app, plane: { side, figure } }: { app: GapOrGsp; plane: PlaneFigure }) => (
  <figure>
    <figcaption>
      <span>{TITLES[side]}</span>
      <span>
        MAP@R <b>{app.cells[side].map_at_r}</b>
      </span>
    </figcaption>
    <Foreign element={figure.root} />
  </figure>
);

const Chips = ({ app }: { app: GapOrGsp }) => (
  <div class="chips" role="group" aria-label="highlighted class">
    <small>Class</small>
    {app.player.options.classes.slice(0, app.clock.state.classes).map((name, label) => (
      <button
        key={label}
        aria-pressed={app.chosen === label}
        aria-label={`class ${label + 1}`}
        title={`class ${label + 1}: ${name}`}
        data-class={label}
        onClick={() => app.choose(app.chosen === label ? null : label)}
      >
        <i
          class={label < 8 ? "round" : ""}
          style={{ background: colourOf(label, app.player.theme) }}
        />
        {label + 1}
      </button>
    ))}
  </div>
);

export const NumberTable = ({
  cells,
}: {
  cells: Record<Side, Record<Measure, Signal<string>>>;
}) => (
  <table class="numbers">
    <thead>
      <tr>
        <th />
        {SIDES.map((side) => (
          <th key={side} scope="col">
            {side.toUpperCase()}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {MEASURES.map(([name, title, help]) => (
        <tr key={name} title={help}>
          <th scope="row">{title}</th>
          {SIDES.map((side) => (
            <td key={side} data-readout={`${side} ${name}`}>
              {cells[side][name]}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);
