// Surroundings of the plane of a real triplet: the sentence above it, and additions to its legend.
import type { ReadonlySignal } from "@preact/signals";
import type { Fields } from "../../kit/plane/plane.ts";
import type { FailureData } from "./types.ts";
import type { Overlay } from "./overlay.tsx";
import { Key, PresentButtons, Switch } from "../../kit/panel/panel.tsx";

// Says whether the points are the embeddings, and leads back to them.
export function WhatIf({ away, onBack }: { away: ReadonlySignal<boolean>; onBack(): void }) {
  return (
    <>
      <span role="status" class={away.value ? "away" : undefined}>
        {away.value
          ? "Points differ from the embeddings."
          : "The three embeddings. Drag a point to see what changes."}
      </span>
      <button class="back" hidden={!away.value} onClick={onBack}>
        Back to the embeddings
      </button>
    </>
  );
}

export const LegendParts = ({
  app,
  overlay,
  data,
}: {
  app: Fields;
  overlay: Overlay;
  data: ReadonlySignal<FailureData>;
}) => (
  <>
    <Key kind="ghost">after one step</Key>
    <Key kind="dotted" hidden={!data.value.circle}>
      unit sphere in this plane
    </Key>
    <Switch
      also="key"
      checked={!overlay.hidden.value}
      onChange={(on) => {
        overlay.hidden.value = !on;
      }}
    >
      images
    </Switch>
    <span class="exports">
      <button class="png" onClick={() => app.save("png")}>
        PNG
      </button>
      <PresentButtons app={app} />
    </span>
  </>
);
