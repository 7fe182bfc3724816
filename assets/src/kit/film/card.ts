// Share card: the figure of a page with its title, caption and formula, 1200 x 630 pixels, the size
// that link previews use.
import type { Picture } from "./picture.ts";
import type { Filmed, Presentation } from "../types.ts";
import { drawing, el } from "../dom.ts";
import { schemaReady } from "../component.ts";
import { formula, katex } from "../formula/formula.ts";
import { captionOf, lossMenus, lossOf } from "../present/caption.ts";
import { clear, figureLayers } from "./picture.ts";

export type Carded = Filmed & { data: { present?: Presentation | null } };

const WIDTH = 1200,
  HEIGHT = 630,
  MARGIN = 48,
  GAP = 44, // between figure and words
  WIDE = 1.6, // figures that are wider, in heights, lie above the words
  WORDS = 180, // px, height of these words
  FORMULA = 26, // px, type size of the formula
  PATIENCE = 600; // frames to wait at most for what Python computes

// Return the share card of a page. Words and formula are those of this moment, and `draw` draws the
// figure as it is then, or the image if there is one.
export async function cardOf(app: Carded, image?: Blob): Promise<Picture> {
  const canvas = el("canvas", { width: WIDTH, height: HEIGHT }),
    ctx = drawing(canvas),
    words = await wordsOf(app),
    bitmap = image && (await createImageBitmap(image)),
    layersOf = () => (bitmap ? layersOfImage(bitmap) : figureLayers(app)),
    { width, height } = layersOf(),
    wide = width > WIDE * height,
    room = wide
      ? { width: WIDTH - 2 * MARGIN, height: HEIGHT - 2 * MARGIN - GAP - WORDS }
      : { width: 640, height: HEIGHT - 2 * MARGIN },
    scale = Math.min(room.width / width, room.height / height),
    left = wide ? MARGIN : MARGIN + width * scale + GAP,
    top = wide ? MARGIN + height * scale + GAP : MARGIN;
  return {
    canvas,
    draw() {
      const figure = layersOf();
      clear(ctx, app.whole);
      ctx.save();
      ctx.translate(MARGIN, MARGIN);
      ctx.scale(scale, scale);
      ctx.translate(-figure.left, -figure.top);
      figure.draw(ctx);
      ctx.restore();
      write(ctx, words, left, top, wide);
    },
  };
}

const layersOfImage = (image: ImageBitmap) => ({
  left: 0,
  top: 0,
  width: image.width,
  height: image.height,
  draw: (ctx: CanvasRenderingContext2D) => ctx.drawImage(image, 0, 0),
});

// Return the share card of a page as a PNG, once the figure shows the answer of Python. `image`
// returns what it shows in place of the figure.
export async function cardImage(app: Carded, image?: () => Promise<Blob>) {
  await answered(app);
  const { canvas, draw } = await cardOf(app, await image?.());
  draw();
  return new Promise<Blob | null>((resolve) => {
    canvas.toBlob(resolve, "image/png");
  });
}

// Wait until no request is pending, and for the frame that paints the last answer.
async function answered(app: Carded, waited = 0) {
  const pending = app.link?.busy || app.link?.waiting;
  await new Promise(requestAnimationFrame);
  if (pending && waited < PATIENCE) await answered(app, waited + 1);
}

interface Words {
  title: string;
  caption: string;
  formulas: HTMLImageElement[];
  colour: string;
  family: string;
}

async function wordsOf({ whole, data }: Carded): Promise<Words> {
  const { color, fontFamily } = getComputedStyle(whole),
    { losses } = await schemaReady(),
    about = data.present,
    boxes = [...whole.querySelectorAll<HTMLElement>(".formula")].filter((box) => box.offsetWidth),
    chosen = lossMenus(whole).flatMap(({ value }) => losses[value]?.latex ?? []),
    latex = chosen.length
      ? new Set(chosen)
      : boxes.slice(0, 1).map((box) => box.dataset.latex ?? "");
  return {
    title: lossOf(whole) || about?.title || document.title,
    caption: captionOf(whole, about),
    formulas: await Promise.all([...latex].map((each) => formulaImage(each, whole, color))),
    colour: color,
    family: fontFamily,
  };
}

function write(
  ctx: CanvasRenderingContext2D,
  { title, caption, formulas, colour, family }: Words,
  left: number,
  top: number,
  wide: boolean,
) {
  const width = WIDTH - MARGIN - left,
    half = wide ? width / 2 - GAP / 2 : width;
  ctx.fillStyle = colour;
  ctx.textBaseline = "top";
  let y = paragraph(ctx, title, `600 34px ${family}`, left, top, half, 42);
  ctx.globalAlpha = 0.75;
  y = paragraph(ctx, caption, `20px ${family}`, left, y + 8, half, 28);
  ctx.globalAlpha = 1;
  let below = wide ? top : y + 24;
  const stack = formulas.reduce((sum, { height }) => sum + height + 12, 0),
    fit = (HEIGHT - MARGIN - below) / stack; // keeps them above the name of the lab
  for (const image of formulas) {
    const by = Math.min(1, half / image.width, fit);
    ctx.drawImage(
      image,
      wide ? left + half + GAP : left,
      below,
      image.width * by,
      image.height * by,
    );
    below += image.height * by + 12;
  }
  ctx.globalAlpha = 0.6;
  ctx.font = `18px ${family}`;
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "right";
  ctx.fillText("DML Lab", WIDTH - MARGIN, HEIGHT - MARGIN / 2);
  ctx.textAlign = "left";
  ctx.globalAlpha = 1;
}

// Write a text in lines of at most `width` pixels and return where the next one begins.
function paragraph(
  ctx: CanvasRenderingContext2D,
  text: string,
  font: string,
  left: number,
  top: number,
  width: number,
  leading: number,
) {
  ctx.font = font;
  const lines = text.split(/\s+/).reduce<string[]>((done, word) => {
    const longer = [done.at(-1), word].filter(Boolean).join(" ");
    if (done.length && ctx.measureText(longer).width <= width)
      return [...done.slice(0, -1), longer];
    return [...done, word];
  }, []);
  lines.forEach((line, i) => ctx.fillText(line, left, top + i * leading));
  return top + lines.length * leading;
}

// Return a formula as an image, from the MathML that KaTeX adds for screen readers: canvases draw
// neither HTML nor MathML, unless it is in an SVG.
async function formulaImage(latex: string, whole: HTMLElement, colour: string) {
  const box = formula(latex);
  await katex();
  const math = box.querySelector("math"),
    style = `display: inline-block; padding: 4px; font-size: ${FORMULA}px; color: ${colour}`,
    shown = el("div", { style: `${style}; position: absolute; visibility: hidden` });
  math?.querySelector("annotation")?.remove();
  shown.append(math ?? latex);
  whole.append(shown);
  const { width, height } = shown.getBoundingClientRect();
  shown.remove();
  shown.style.cssText = style;
  const image = new Image(Math.ceil(width), Math.ceil(height)),
    svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${image.width}" height="${image.height}">
      <foreignObject width="100%" height="100%">${new XMLSerializer().serializeToString(shown)}
      </foreignObject></svg>`;
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  return image;
}
