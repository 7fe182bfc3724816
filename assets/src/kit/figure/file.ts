// Files of what a canvas shows, made by the same drawing as the screen.
import type { Context } from "../types.ts";
import { drawing } from "../dom.ts";

/** A drawing and its size in CSS pixels; `scale`: pixels of a PNG per CSS pixel. */
export interface Sheet {
  width: number;
  height: number;
  scale: number;
  draw(ctx: Context): void;
}

/** Formats of a file, with their names on the screen. */
export const FIGURE_FORMATS = { png: "PNG", svg: "SVG", pdf: "PDF" } as const;
export type FigureFormat = keyof typeof FIGURE_FORMATS;

/** Return the file of a drawing; svg and pdf are vector graphics, with text as text. */
export async function fileOf(
  { width, height, scale, draw }: Sheet,
  format: FigureFormat,
): Promise<Blob> {
  if (format === "png") {
    const canvas = new OffscreenCanvas(Math.round(width * scale), Math.round(height * scale)),
      ctx = drawing(canvas);
    ctx.scale(scale, scale);
    draw(ctx);
    return canvas.convertToBlob();
  }
  const { recordSvg } = await import("./svg.ts"),
    svg = recordSvg(width, height, draw);
  if (format === "svg") return new Blob([svg], { type: "image/svg+xml" });
  const { pdfOf } = await import("./pdf.ts");
  return pdfOf(svg);
}
