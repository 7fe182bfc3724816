// Figure of the map with its legend and source.
import type { MapView } from "./explore.ts";
import type { Context } from "../../kit/types.ts";
import { drawing } from "../../kit/dom.ts";
import { rampColour } from "../../kit/colours.ts";
import { shape } from "../../kit/plot.ts";
import { LOWEST, hex, scaleOf, shapeOf } from "./legend.ts";
import { isMetadata } from "./facets.ts";
import { shortened } from "./overlay.ts";

const SIDE = 200,
  LINE = 19,
  FOOT = 30,
  SHAPES = ["circle", "square", "triangle", "diamond"];

// Return a canvas of the map as just painted, at twice the resolution of the screen.
export function figure(map: MapView) {
  const { camera, data } = map,
    width = camera.width + SIDE,
    height = camera.height + FOOT;
  const canvas = document.createElement("canvas"),
    ctx = drawing(canvas);
  canvas.width = 2 * width;
  canvas.height = 2 * height;
  ctx.scale(2, 2);
  ctx.fillStyle = map.paper;
  ctx.fillRect(0, 0, width, height);
  for (const layer of [map.points, map.canvas])
    ctx.drawImage(layer, 0, 0, camera.width, camera.height);
  ctx.font = `12.5px ${map.font}`;
  ctx.fillStyle = map.ink;
  const step = data.steps.length > 1 ? ` · ${map.player.text.textContent}` : "";
  ctx.fillText(`${data.title}${step} · ${data.run}`, 10, height - 10);
  legend(ctx, map, camera.width + 14, camera.height);
  return canvas;
}

function legend(ctx: Context, map: MapView, left: number, height: number) {
  const { data } = map,
    { colour } = map.look,
    facts = colour === "class" ? undefined : map.facets.columns[colour];
  let y = 22;
  const line = (kind: string, ink: string, text: string) => {
    if (kind) {
      shape(ctx, kind, left + 6, y - 4, 5);
      ctx.fillStyle = ink;
      ctx.fill();
    }
    ctx.fillStyle = map.ink;
    ctx.fillText(shortened(text, 26), left + (kind ? 18 : 0), y);
    y += LINE;
  };
  if (colour === "class") {
    const shown = map.cloud.classes
        .map((c, k) => [c, k] as const)
        .filter(([c]) => map.matchesFilter(c.label)),
      room = Math.floor((height - 30) / LINE);
    const first = shown.length > room ? shown.slice(0, room - 1) : shown;
    for (const [c, k] of first) line(SHAPES[k & 3], c.colour, `${c.name} (${c.count})`);
    if (first.length < shown.length)
      line("", "", `and ${shown.length - first.length} more classes`);
  } else if (facts?.names) {
    if (isMetadata(colour)) line("", "", data.menus.colour[colour]);
    facts.names.forEach((name, k) =>
      line(shapeOf(colour, k), hex(map.table, k), `${name} (${map.counts[colour]?.[k] ?? 0})`),
    );
  } else if (facts) {
    const { title, low, high } = scaleOf(map, colour, facts);
    line("", "", title);
    for (let i = 0; i < 160; i++) {
      ctx.fillStyle = `rgb(${rampColour(LOWEST + ((1 - LOWEST) * i) / 159, map.theme)})`;
      ctx.fillRect(left + i, y - 10, 1, 10);
    }
    y += LINE;
    line("", "", `${low} to ${high}`);
  }
}
