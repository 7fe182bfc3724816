// Numbers of the state of a player; another number restarts it.
import { IntegerBox, Switches } from "../panel/panel.tsx";

const MOST_SEED = 2 ** 31 - 1;

interface Restartable {
  state: object;
  restart(change: Record<string, unknown>): void;
}

interface NumberProps {
  player: Restartable;
  name: string;
  label: string;
  range: readonly [low: number, high: number];
  title?: string;
}

// Number box of an integer in the state.
export const StateNumber = ({ player, name, label, range, title }: NumberProps) => (
  <IntegerBox
    label={label}
    title={title}
    range={range}
    value={(player.state as Record<string, number>)[name]}
    onChange={(x) => player.restart({ [name]: x })}
  />
);

// Seed of the state, and a button for the next one.
export const SeedField = ({
  player,
  title,
}: {
  player: Restartable & { state: { seed: number } };
  title?: string;
}) => (
  <label class="field">
    seed
    <span class="seed">
      <StateNumber player={player} name="seed" label="seed" range={[0, MOST_SEED]} title={title} />
      <button
        title="Use another seed"
        onClick={() => player.restart({ seed: (player.state.seed + 1) % (MOST_SEED + 1) })}
      >
        next
      </button>
    </span>
  </label>
);

// Switches of the marks that a player paints.
export const ShownSwitches = <K extends string>({
  player,
  rows,
}: {
  player: { shown: Record<K, boolean>; invalidate(): void };
  rows: Parameters<typeof Switches<K>>[0]["rows"];
}) => (
  <Switches
    shown={player.shown}
    rows={rows}
    onChange={(key, on) => {
      player.shown[key] = on;
      player.invalidate();
    }}
  />
);
