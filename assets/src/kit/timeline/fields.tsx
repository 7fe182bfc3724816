// Controls of pages with a player: presets, numbers of the state, switches.
import type { Kinds } from "./types.ts";
import type { Player } from "./player.ts";
import { IntegerBox, Presets, Switches } from "../panel/panel.tsx";

const MOST_SEED = 2 ** 31 - 1;

interface Restartable {
  clock: { state: { seed: number } };
  changes: { restart(change: Record<string, unknown>): void };
}

interface NumberProps {
  player: Restartable;
  name: string;
  label: string;
  range: readonly [low: number, high: number];
  title?: string;
}

// Presets of a page, unless the address hides them.
export const TimelinePresets = <K extends Kinds>({ player }: { player: Player<K> }) =>
  !player.session.hidden.has("presets") && (
    <Presets
      offers={player.options.presets}
      pressed={player.view.pressed}
      onPress={(i) => player.changes.preset(i)}
    />
  );

// Number box of an integer in the state; another number restarts the player.
export const StateNumber = ({ player, name, label, range, title }: NumberProps) => (
  <IntegerBox
    label={label}
    title={title}
    range={range}
    value={(player.clock.state as object as Record<string, number>)[name]}
    onChange={(x) => player.changes.restart({ [name]: x })}
  />
);

// Seed of the state, and a button for the next one.
export const SeedField = ({ player, title }: { player: Restartable; title?: string }) => (
  <label class="field">
    seed
    <span class="seed">
      <StateNumber player={player} name="seed" label="seed" range={[0, MOST_SEED]} title={title} />
      <button
        title="Use another seed"
        onClick={() =>
          player.changes.restart({ seed: (player.clock.state.seed + 1) % (MOST_SEED + 1) })
        }
      >
        next
      </button>
    </span>
  </label>
);

// Switches of the marks that a figure on a clock paints.
export const ShownSwitches = <K extends string>({
  app,
  rows,
}: {
  app: { shown: Record<K, boolean>; clock: { invalidate(): void } };
  rows: Parameters<typeof Switches<K>>[0]["rows"];
}) => (
  <Switches
    shown={app.shown}
    rows={rows}
    onChange={(key, on) => {
      app.shown[key] = on;
      app.clock.invalidate();
    }}
  />
);
