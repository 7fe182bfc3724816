// Several figures in one file.
import type { Theme } from "../types.ts";
import type { Figure } from "./figure.ts";
import { INK } from "../colours.ts";
import { drawing } from "../dom.ts";

const GAP = 24, // pixels between figures
  HEAD = 60, // pixels for the titles
  LINE = 22; // pixels from a title to its second line

/** A figure of a sheet with its title and perhaps a second line. */
export type Titled = readonly [figure: Pick<Figure, "png">, title: string, more?: string];

/** Words below the figures, with a scale of colours between them. */
export interface Foot {
  text: string;
  colour?(t: number): number[]; // t in 0..1
  more?: string; // after the scale
}

/** Return a PNG of figures side by side, each `width` pixels wide and below its title. */
export async function sheet(
  figures: readonly Titled[],
  width: number,
  theme: Theme,
  foot?: Foot,
): Promise<Blob> {
  const images = await Promise.all(
      figures.map(async ([figure]) => createImageBitmap(await figure.png(width))),
    ),
    unit = width / 48,
    head = figures.some(([, title]) => title) ? HEAD : 0,
    bottom = head + Math.max(...images.map((image) => image.height)),
    canvas = new OffscreenCanvas(images.length * (width + GAP) - GAP, bottom + (foot ? HEAD : 0)),
    ctx = drawing(canvas);
  ctx.fillStyle = INK[theme].page;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = INK[theme].text;
  ctx.font = `${Math.round(unit)}px system-ui, sans-serif`;
  images.forEach((image, i) => {
    const x = i * (width + GAP),
      [, title, more] = figures[i];
    ctx.drawImage(image, x, head);
    ctx.fillText(title, x + 16, head - (more ? 20 + LINE : 20), width - 32);
    if (more) ctx.fillText(more, x + 16, head - 14, width - 32);
  });
  if (foot) {
    const { text, colour, more = "" } = foot,
      y = bottom + 36,
      from = 28 + ctx.measureText(text).width,
      long = colour ? 8 * unit : 0;
    ctx.fillText(text, 16, y, canvas.width - 32);
    ctx.fillText(more, from + long + 12, y);
    for (let i = 0; colour && i < long; i++) {
      ctx.fillStyle = `rgb(${colour(i / long)})`;
      ctx.fillRect(from + i, y - unit, 1, 1.2 * unit);
    }
  }
  return canvas.convertToBlob();
}
