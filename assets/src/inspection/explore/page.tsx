// The page's elements from top to bottom.
import type { Explore } from "./explore.tsx";
import { Live } from "../../kit/panel/readouts.tsx";
import { Card } from "./card.tsx";
import { MapContext } from "./context.ts";
import { showAll } from "./figure.ts";
import { Legend } from "./legend.tsx";
import { Sample } from "./sample.tsx";
import { Tools } from "./tools.tsx";
import { Wall } from "./wall.tsx";

const STEP = 1.4; // zoom of a button

// Put an element that is not made by preact into the tree.
const Host = ({ node }: { node: Element }) => (
  <div style="display: contents" ref={(host) => host?.append(node)} />
);

export const Page = ({ map }: { map: Explore }) => (
  <MapContext.Provider value={map}>
    <Tools />
    <div class="body">
      <Legend />
      <Host node={map.figure.root} />
      <Wall />
    </div>
    <Host node={map.player.root} />
    <Live text={map.s.spoken} />
    <Sample />
  </MapContext.Provider>
);

// Elements over the map.
export function Overlay({ map }: { map: Explore }) {
  const { notice, marks } = map.s;
  const buttons = [
    ["+", "zoom in", () => map.figure.zoom(1 / STEP)],
    ["−", "zoom out", () => map.figure.zoom(STEP)],
    ["⤢", "whole map", () => showAll(map)],
  ] as const;
  return (
    <MapContext.Provider value={map}>
      <div class="notice" hidden={!notice.value}>
        {notice}
      </div>
      <div class="marks">{marks}</div>
      <div class="zoom">
        {buttons.map(([text, label, act]) => (
          <button key={text} aria-label={label} title={label} onClick={act}>
            {text}
          </button>
        ))}
      </div>
      <Card />
    </MapContext.Provider>
  );
}
