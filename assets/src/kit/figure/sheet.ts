// Several figures in one file.
import type { Context, Theme } from "../types.ts";
import type { Figure } from "./figure.ts";
import type { Sheet } from "./file.ts";
import { INK } from "../colours.ts";

const WIDTH = 480, // of a figure, in CSS pixels
  GAP = 12, // between figures
  HEAD = 30, // for the titles
  LINE = 11, // from a title to its second line
  SIZE = 10; // of the font

/** A figure of a sheet with its title and perhaps a second line. */
export type Titled = readonly [figure: Pick<Figure, "sheet">, title: string, more?: string];

/** Words below the figures, with a scale of colours between them. */
export interface Foot {
  text: string;
  colour?(t: number): number[]; // t in 0..1
  more?: string; // after the scale
}

/** Return a sheet of figures side by side, each below its title and, in a PNG, `pixels` wide. */
export function sheetOf(
  figures: readonly Titled[],
  pixels: number,
  theme: Theme,
  foot?: Foot,
): Sheet {
  const sheets = figures.map(([figure]) => figure.sheet()),
    head = figures.some(([, title]) => title) ? HEAD : 0,
    bottom = head + Math.max(...sheets.map(({ width, height }) => (height / width) * WIDTH)),
    width = sheets.length * (WIDTH + GAP) - GAP,
    height = bottom + (foot ? HEAD : 0);
  return { width, height, scale: pixels / WIDTH, draw };

  function draw(ctx: Context): void {
    ctx.fillStyle = INK[theme].page;
    ctx.fillRect(0, 0, width, height);
    sheets.forEach((sheet, i) => {
      ctx.save();
      ctx.translate(i * (WIDTH + GAP), head);
      ctx.scale(WIDTH / sheet.width, WIDTH / sheet.width);
      sheet.draw(ctx);
      ctx.restore();
    });
    ctx.fillStyle = INK[theme].text;
    ctx.font = `${SIZE}px system-ui, sans-serif`;
    figures.forEach(([, title, more], i) => {
      const x = i * (WIDTH + GAP) + 8;
      ctx.fillText(title, x, head - (more ? 10 + LINE : 10), WIDTH - 16);
      if (more) ctx.fillText(more, x, head - 7, WIDTH - 16);
    });
    if (foot) below(ctx, foot);
  }

  function below(ctx: Context, { text, colour, more = "" }: Foot): void {
    const y = bottom + 18,
      from = 14 + ctx.measureText(text).width,
      long = colour ? 8 * SIZE : 0;
    ctx.fillText(text, 8, y, width - 16);
    ctx.fillText(more, from + long + 6, y);
    for (let i = 0; colour && i < long; i++) {
      ctx.fillStyle = `rgb(${colour(i / long)})`;
      ctx.fillRect(from + i, y - SIZE, 1, 1.2 * SIZE);
    }
  }
}
