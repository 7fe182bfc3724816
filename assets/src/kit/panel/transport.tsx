// Transport bar of a figure that plays: reset, single steps, play, scrub bar, time and speed.
import { useRef } from "preact/hooks";
import { useSignalEffect } from "@preact/signals";
import type { Playback } from "../timeline/playback.ts";
import type { newView } from "../timeline/view.ts";

export interface Playable {
  view: ReturnType<typeof newView>; // the bar follows it without a rendering
  playback: Playback;
  address: { rest(): void }; // called when the scrub bar is released
}

interface TransportProps {
  player: Playable;
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
  const { playing, time } = player.view,
    { playback } = player;
  return (
    <div class="transport" role={label ? "group" : undefined} aria-label={label}>
      {button("⟲", "reset", () => playback.goTo(0))}
      {epochs && button("«", "one epoch back", () => playback.step(-1, true))}
      {button("‹", `one ${unit} back`, () => playback.step(-1))}
      {playing.value
        ? button("Pause", "pause", () => playback.toggle(), "play")
        : button("Play", "play", () => playback.toggle(), "play")}
      {button("›", `one ${unit} on`, () => playback.step(1))}
      {epochs && button("»", "one epoch on", () => playback.step(1, true))}
      <ScrubBar player={player} />
      <output>{time}</output>
      <select
        aria-label="speed"
        value={String(playback.speed)}
        onChange={(e) => playback.setSpeed(Number(e.currentTarget.value))}
      >
        {playback.speeds.map(([text], i) => (
          <option key={text} value={i}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

function ScrubBar({ player }: { player: Playable }) {
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
      onInput={(e) => player.playback.scrubTo(Number(e.currentTarget.value))}
      onChange={() => player.address.rest()}
    />
  );
}
