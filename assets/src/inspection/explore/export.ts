// Figure of the map with its legend and source, as a PNG.
import type { Explore } from "./explore.tsx";
import { INK } from "../../kit/colours.ts";
import { drawing, save } from "../../kit/dom.ts";
import { shape } from "../../kit/plot.ts";
import { cssColour, scaleColour, scaleOf, shapeOf } from "./colours.ts";
import { isMetadata } from "./facets.ts";
import { shortened } from "./overlay.ts";
import { coloured, matches } from "./state.ts";

const SIDE = 200,
  LINE = 19,
  FOOT = 30;

// Save the map as shown, at twice the resolution of a page.
export async function savePng(map: Explore) {
  const { s, figure } = map,
    { title, run, steps } = s.data.peek(),
    { width, height } = figure.view,
    ink = INK[s.theme.peek()],
    image = await createImageBitmap(await figure.png(2 * width)),
    canvas = new OffscreenCanvas(2 * (width + SIDE), 2 * (height + FOOT)),
    ctx = drawing(canvas);
  figure.invalidate(); // the canvas of the points has another resolution
  ctx.scale(2, 2);
  ctx.fillStyle = ink.page;
  ctx.fillRect(0, 0, width + SIDE, height + FOOT);
  ctx.drawImage(image, 0, 0, width, height);
  ctx.font = `12.5px ${map.font}`;
  ctx.fillStyle = ink.text;
  const step = steps.length > 1 ? ` · ${map.player.text.textContent}` : "";
  ctx.fillText(`${title}${step} · ${run}`, 10, height + FOOT - 10);
  let y = 22;
  for (const { mark, colour = ink.text, text, ramp } of legend(map, height)) {
    if (mark) shape(ctx, mark, width + 20, y - 4, 5);
    ctx.fillStyle = colour;
    if (mark) ctx.fill();
    for (let i = 0; ramp && i < 160; i++) {
      ctx.fillStyle = `rgb(${scaleColour(i / 159, s.theme.peek())})`;
      ctx.fillRect(width + 14 + i, y - 10, 1, 10);
    }
    ctx.fillStyle = ink.text;
    ctx.fillText(shortened(text, 26), width + (mark ? 32 : 14), y);
    y += LINE;
  }
  save(`map-${run}.png`, await canvas.convertToBlob());
}

interface Line {
  text: string;
  mark?: string; // shape
  colour?: string;
  ramp?: boolean; // the colours of a scale
}

// Return the lines of the legend; classes as far as there is space.
function legend({ s }: Explore, height: number): Line[] {
  const colour = s.look.colour.peek(),
    facts = coloured(s),
    heading = s.data.peek().menus.colour[colour];
  if (colour === "class") {
    const shown = (s.cloud.peek()?.classes ?? [])
        .map((c, k) => ({ c, mark: shapeOf("class", k) }))
        .filter(({ c }) => matches(s, c.label)),
      room = Math.floor((height - 30) / LINE),
      first = shown.length > room ? shown.slice(0, room - 1) : shown,
      rest = shown.length - first.length;
    return [
      ...first.map(({ c, mark }) => ({ mark, colour: c.colour, text: `${c.name} (${c.count})` })),
      ...(rest ? [{ text: `and ${rest} more classes` }] : []),
    ];
  }
  if (facts?.names)
    return [
      ...(isMetadata(colour) ? [{ text: heading }] : []),
      ...facts.names.map((name, k) => ({
        mark: shapeOf(colour, k),
        colour: cssColour(s.painted.peek()?.table ?? new Uint8Array(), k),
        text: `${name} (${s.counts.peek()[colour]?.[k] ?? 0})`,
      })),
    ];
  if (!facts) return [];
  const { title, low, high } = scaleOf(facts, heading);
  return [{ text: title }, { text: "", ramp: true }, { text: `${low} to ${high}` }];
}
