// Toy training page: windows with their numbers and curves, transport bar, scores, panel.
import type { Toys } from "./toy_training.ts";
import type { CloudWindow } from "./window.ts";
import { Foreign, Live, Notice, Readouts, Transport, defaultsOf } from "../../kit/panel/panel.tsx";
import { still } from "../../kit/dom.ts";
import { TimelinePresets } from "../../kit/timeline/fields.tsx";
import { Controls } from "./controls.tsx";
import { LETTERS, lossName } from "./names.ts";
import { colourOf, shapeOf } from "./palette.ts";
import { ScoreTable } from "./table.tsx";
import type { Published } from "./types.ts";

const MANY = 20; // classes that are not scrolled

export const Page = ({ app }: { app: Toys }) => (
  <>
    <TimelinePresets player={app.player} />
    <div class="stage">
      <div class="work" ref={app.setWork} onKeyDown={(e) => app.player.key(e)}>
        <div
          class={app.preparation ? "views stale" : "views"}
          data-count={app.windows.length}
          data-images={String(app.images)}
        >
          {app.windows.map((window) => (
            <Window key={window.name + window.side} app={app} window={window} />
          ))}
        </div>
        <Transport
          player={app.player}
          unit="batch"
          label="time: space plays and pauses, comma and full stop step by batch, page up and down by epoch, home resets"
          epochs
        />
        <Notice text={app.player.view.notice} />
        <Foreign key={app.windows.length} element={app.curves.whole} />
        {!app.player.session.hidden.has("table") && (
          <ScoresOf app={app} names={app.clock.state.sides.map((_, i) => app.name(i))} />
        )}
        <Live text={app.player.view.live} />
      </div>
      <Controls app={app} />
    </div>
  </>
);

function Window({ app, window }: { app: Toys; window: CloudWindow }) {
  const { side, name, figure } = window,
    { data } = app.clock.history,
    letter = LETTERS[side],
    count = app.windows.length;
  return (
    <div class={`view ${name}`}>
      <h4>
        {side < 0 ? "Inputs" : <b class={`side${letter}`}>{letter}</b>}
        <small>
          {side >= 0 ? app.name(side) : app.preparation ? "in preparation" : data?.note}
        </small>
      </h4>
      <Foreign key={`figure ${count}`} element={figure.root} />
      <Readouts key={`numbers ${count}`} rows={window.readout} />
      {side >= 0 && app.images && <canvas class="strip" role="img" ref={window.setStrip} />}
      {side < 0 ? (
        <Chips app={app} />
      ) : (
        <Foreign key={`curve ${count}`} element={app.curves.canvases[side]} />
      )}
    </div>
  );
}

function Chips({ app }: { app: Toys }) {
  const { clock, player, highlighted, preparation } = app,
    names = preparation ? [] : (clock.history.data?.classes ?? []);
  return (
    <div
      class={names.length > MANY ? "chips many" : "chips"}
      role="group"
      aria-label="classes: select some to show only these"
    >
      {names.map((name, k) => (
        <button
          key={k}
          data-class={k}
          aria-pressed={highlighted.has(k)}
          onClick={() => app.light(k)}
        >
          <i class={shapeOf(k)} style={`background:${colourOf(k, player.theme)}`} />
          {name}
        </button>
      ))}
      {highlighted.size > 0 && <button onClick={() => app.light(null)}>all</button>}
    </div>
  );
}

function ScoresOf({ app, names }: { app: Toys; names: string[] }) {
  const { schema, player } = app,
    { changes, playback, options } = player,
    table = app.scores.table.value;
  const use = (side: number, { loss, hyper }: Published) => {
    const sides = structuredClone(changes.now.sides);
    sides[side] = { ...sides[side], loss, hyper: { ...defaultsOf(schema.losses[loss]), ...hyper } };
    changes.restart({ sides });
    if (!still()) playback.play();
  };
  if (!table) return <div />;
  return (
    <div data-step={table.step}>
      <h4>Scores over all samples</h4>
      <ScoreTable
        table={table}
        names={names}
        title={({ loss, hyper, label }) => (loss ? lossName(schema, loss, hyper) : label)}
        onUse={use}
      />
      <p class="caption">
        {table.published.length > 0 &&
          `Training scores of Karaman 2021, Table 4.1, and ours. ${options.not_stated}`}
      </p>
    </div>
  );
}
