// SVG recorded from the calls that paint a canvas. svgcanvas does the most; what it lacks is added
// here: Path2D, the even-odd rule, arcs of a full turn, images and patterns of an OffscreenCanvas,
// baselines and transparent colours that all programs read. Loaded with the first export.
import { Context } from "svgcanvas";
import type { Context as AnyContext } from "../types.ts";
import { drawing } from "../dom.ts";

const PATH = [
  "moveTo",
  "lineTo",
  "bezierCurveTo",
  "quadraticCurveTo",
  "arc",
  "arcTo",
  "ellipse",
  "rect",
  "roundRect",
  "closePath",
] as const;
const TURN = 2 * Math.PI,
  NONE = "rgba(0, 0, 0, 0)";

type Call = (context: CanvasPath) => void;

/** A path that remembers the calls that made it. */
class RecordedPath extends Path2D {
  readonly calls: Call[] = [];

  addPath(path: Path2D): void {
    if (path instanceof RecordedPath) this.calls.push(...path.calls);
  }
}
for (const name of PATH)
  Object.defineProperty(RecordedPath.prototype, name, {
    value(this: RecordedPath, ...values: number[]) {
      this.calls.push((context) => (context[name] as (...v: number[]) => void)(...values));
    },
  });

// Return an element that svgcanvas accepts as an image, with the opacity that svgcanvas ignores.
function asElement(image: CanvasImageSource, opacity = 1): CanvasImageSource {
  const accepted = image instanceof HTMLCanvasElement || image instanceof HTMLImageElement;
  if (accepted && opacity === 1) return image;
  const { width, height } = image as OffscreenCanvas,
    canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const ctx = drawing(canvas);
  ctx.globalAlpha = opacity;
  ctx.drawImage(image, 0, 0);
  return canvas;
}

// Return "#rrggbbaa" as rgba(), which svgcanvas writes as a colour and an opacity.
function plain<S>(style: S): S | string {
  if (typeof style !== "string" || !/^#[\da-f]{8}$/i.test(style)) return style;
  const [r, g, b, a] = [1, 3, 5, 7].map((at) => Number.parseInt(style.slice(at, at + 2), 16));
  return `rgba(${r}, ${g}, ${b}, ${(a / 255).toFixed(3)})`;
}

class Recorder extends Context {
  readonly vector = true; // read by isVector
  private readonly ruler = drawing(new OffscreenCanvas(1, 1));

  fill(path?: Path2D | CanvasFillRule, rule?: CanvasFillRule): void {
    this.take(path);
    this.without("strokeStyle", () => super.fill());
    if ((rule ?? path) === "evenodd") this.__currentElement.setAttribute("fill-rule", "evenodd");
  }
  stroke(path?: Path2D): void {
    this.take(path);
    const { lineWidth, lineDash, magnification } = this;
    if (lineWidth === 1) this.lineWidth = 1.0001; // svgcanvas does not scale its default
    if (typeof lineDash === "string")
      this.setLineDash(lineDash.split(",").map((x) => Number(x) * magnification));
    this.without("fillStyle", () => super.stroke());
    this.lineWidth = lineWidth;
    this.lineDash = lineDash;
  }
  clip(path?: Path2D | CanvasFillRule, rule?: CanvasFillRule): void {
    this.take(path);
    if ((rule ?? path) === "evenodd") this.__currentElement.setAttribute("clip-rule", "evenodd");
    super.clip();
  }

  // A full turn in two halves, as an arc of SVG cannot end where it begins.
  arc(x: number, y: number, r: number, from: number, to: number, back = false): void {
    if (Math.abs(to - from) < TURN) return super.arc(x, y, r, from, to, back);
    super.arc(x, y, r, from, from + Math.PI);
    super.arc(x, y, r, from + Math.PI, from + TURN);
  }
  ellipse(
    ...[x, y, rx, ry, turn, from, to, back = false]: Parameters<CanvasPath["ellipse"]>
  ): void {
    if (Math.abs(to - from) < TURN) return super.ellipse(x, y, rx, ry, turn, from, to, back);
    super.ellipse(x, y, rx, ry, turn, from, from + Math.PI);
    super.ellipse(x, y, rx, ry, turn, from + Math.PI, from + TURN);
  }

  fillText(text: string, x: number, y: number, most = Infinity): void {
    this.ruler.font = this.font;
    const narrow = most / this.ruler.measureText(text).width;
    this.save();
    this.translate(x, 0);
    if (narrow < 1) this.scale(narrow, 1);
    this.without("strokeStyle", () =>
      this.onBaseline(text, y, (base) => super.fillText(text, 0, base)),
    );
    this.restore();
  }
  strokeText(text: string, x: number, y: number): void {
    const { lineWidth } = this;
    this.lineWidth = lineWidth / this.magnification; // svgcanvas scales the width and the text
    this.without("fillStyle", () =>
      this.onBaseline(text, y, (base) => super.strokeText(text, x, base)),
    );
    this.lineWidth = lineWidth;
  }
  drawImage(image: CanvasImageSource, ...rest: number[]): void {
    const draw = super.drawImage as (image: CanvasImageSource, ...values: number[]) => void;
    draw.call(this, asElement(image, this.globalAlpha), ...rest);
  }
  createPattern(image: CanvasImageSource, repetition: string | null): CanvasPattern | null {
    return super.createPattern(asElement(image), repetition);
  }

  // Units of the page per unit of the drawing.
  private get magnification(): number {
    const { a, b } = this.getTransform();
    return Math.hypot(a, b);
  }

  // Make a Path2D the current path.
  private take(path?: Path2D | CanvasFillRule): void {
    if (typeof path !== "object") return;
    if (!(path instanceof RecordedPath))
      throw new TypeError("a Path2D that was made before the recording cannot be recorded");
    this.beginPath();
    for (const call of path.calls) call(this);
  }

  // Paint without the other style: svgcanvas would apply its gradient or pattern, too.
  private without(other: "fillStyle" | "strokeStyle", paint: () => void): void {
    const style = this[other];
    if (typeof style !== "string") this[other] = NONE;
    paint();
    this[other] = style;
  }

  // Write a text on its alphabetic baseline, the only one that all programs know.
  private onBaseline(text: string, y: number, write: (base: number) => void): void {
    const { ruler, textBaseline, font } = this;
    ruler.font = font;
    const ascent = (baseline: CanvasTextBaseline) => {
      ruler.textBaseline = baseline;
      return ruler.measureText(text).actualBoundingBoxAscent;
    };
    const base = y + ascent("alphabetic") - ascent(textBaseline);
    this.textBaseline = "alphabetic";
    write(base);
    this.textBaseline = textBaseline;
  }
}
for (const name of ["fillStyle", "strokeStyle"] as const) {
  const styles = new WeakMap<Recorder, Recorder[typeof name]>();
  Object.defineProperty(Recorder.prototype, name, {
    get(this: Recorder) {
      return styles.get(this);
    },
    set(this: Recorder, style: Recorder[typeof name]) {
      styles.set(this, plain(style));
    },
  });
}

/** Return the SVG of what `draw` paints on a canvas of width x height CSS pixels. */
export function recordSvg(width: number, height: number, draw: (ctx: AnyContext) => void): string {
  const recorder = new Recorder({ width, height }),
    native = globalThis.Path2D;
  recorder.getSvg().setAttribute("viewBox", `0 0 ${width} ${height}`);
  globalThis.Path2D = RecordedPath; // drawing is synchronous: nothing else sees it
  try {
    draw(recorder);
  } finally {
    globalThis.Path2D = native;
  }
  return recorder.getSerializedSvg();
}
