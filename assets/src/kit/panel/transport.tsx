// Transport bar of a figure that plays: reset, single steps, play, scrub bar, time and speed.
import { useRef } from "preact/hooks";
import { useSignalEffect } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals";

export interface Playback {
  // values that the bar shows; it follows without a rendering
  view: {
    playing: ReadonlySignal<boolean>;
    at: ReadonlySignal<number>; // step shown
    last: ReadonlySignal<number>; // last step that can be shown
    time: ReadonlySignal<string>;
  };
  speeds: readonly (readonly [text: string, ...rest: unknown[]])[];
  speed: number; // index
  setSpeed(index: number): void;
  toggle(): void;
  reset(): void;
  step(by: number, epoch?: boolean): void;
  scrubTo(step: number): void;
  rest(): void; // after the scrub bar was released
}

interface TransportProps {
  player: Playback;
  unit: string; // name of a step
  label?: string;
  epochs?: boolean; // buttons for whole epochs
}

export function Transport({ player, unit, label, epochs = false }: TransportProps) {
  const button = (text: string, name: string, act: () => void, kind?: string) => (
    <button class={kind} aria-label={name} title={name} onClick={act}>
      {text}
    </button>
  );
  const { playing, time } = player.view;
  return (
    <div class="transport" role={label ? "group" : undefined} aria-label={label}>
      {button("⟲", "reset", () => player.reset())}
      {epochs && button("«", "one epoch back", () => player.step(-1, true))}
      {button("‹", `one ${unit} back`, () => player.step(-1))}
      {playing.value
        ? button("Pause", "pause", () => player.toggle(), "play")
        : button("Play", "play", () => player.toggle(), "play")}
      {button("›", `one ${unit} on`, () => player.step(1))}
      {epochs && button("»", "one epoch on", () => player.step(1, true))}
      <ScrubBar player={player} />
      <output>{time}</output>
      <select
        aria-label="speed"
        value={String(player.speed)}
        onChange={(e) => player.setSpeed(Number(e.currentTarget.value))}
      >
        {player.speeds.map(([text], i) => (
          <option key={text} value={i}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

function ScrubBar({ player }: { player: Playback }) {
  const bar = useRef<HTMLInputElement>(null),
    { at, last } = player.view;
  useSignalEffect(() => {
    const [max, value] = [String(last.value), String(at.value)];
    if (bar.current) Object.assign(bar.current, { max, value }); // the limit first
  });
  return (
    <input
      ref={bar}
      type="range"
      aria-label="step"
      min={0}
      onInput={(e) => player.scrubTo(Number(e.currentTarget.value))}
      onChange={() => player.rest()}
    />
  );
}
