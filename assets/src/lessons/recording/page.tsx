// Recording: figures, player, legend of the curves, words.
import type { ReadonlySignal } from "@preact/signals";
import { useComputed } from "@preact/signals";
import type { Recording } from "./recording.ts";
import { Foreign } from "../../kit/panel/panel.tsx";
import { COLOURS, DASHES } from "./draw.ts";

export const Page = ({ app }: { app: Recording }) => (
  <>
    <div key={app.figures.length} class={app.data.kind}>
      {app.figures.map((figure, i) => (
        <Foreign key={i} element={figure.root} />
      ))}
    </div>
    <Foreign element={app.player.root} />
    <div class="keys" hidden={!app.data.names.length}>
      {app.data.names.map((name, i) => (
        <CurveKey
          key={name}
          name={name}
          colour={COLOURS[app.theme][i]}
          dash={DASHES[i].join(" ")}
          values={app.values}
          index={i}
        />
      ))}
    </div>
    <Words text={app.words} />
    {app.data.kind === "projections" && (
      <p class="caption">Colour and shape of a mark: its class.</p>
    )}
  </>
);

const Words = ({ text }: { text: ReadonlySignal<string> }) => <p class="words">{text}</p>;

// Line of a curve, its name and its values at the frame shown.
function CurveKey({
  name,
  colour,
  dash,
  values,
  index,
}: {
  name: string;
  colour: string;
  dash: string;
  values: ReadonlySignal<string[]>;
  index: number;
}) {
  const text = useComputed(() => `${name} ${values.value[index] ?? ""}`);
  return (
    <span>
      <svg width="26" height="8">
        <line x2="26" y1="4" y2="4" stroke={colour} stroke-width="2.2" stroke-dasharray={dash} />
      </svg>
      {text}
    </span>
  );
}
