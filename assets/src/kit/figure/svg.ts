// SVG recorded from the calls that paint a canvas. svgcanvas does the most; what it lacks is added:
// Path2D, the even-odd rule, arcs beyond a full turn, images and patterns from an OffscreenCanvas.
// Loaded only when a file is asked for.
import { Context } from "svgcanvas";
import type { Context as AnyContext } from "../types.ts";

type Call = [name: "moveTo" | "lineTo" | "arc" | "rect" | "closePath", ...values: number[]];
const CALLS = [
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
];
const NONE = "#00000000";

/** A path that remembers the calls that made it, so that they can be recorded. */
class RecordedPath extends Path2D {
  readonly calls: Call[] = [];
  constructor(path?: Path2D | string) {
    super(path);
    if (path instanceof RecordedPath) this.calls.push(...path.calls);
  }
  addPath(path: Path2D): void {
    super.addPath(path);
    if (path instanceof RecordedPath) this.calls.push(...path.calls);
  }
}
for (const name of CALLS)
  Object.defineProperty(RecordedPath.prototype, name, {
    value(this: RecordedPath, ...values: number[]) {
      this.calls.push([name as Call[0], ...values]);
    },
  });

/** Return an element that svgcanvas accepts as an image, of the same content. */
function asCanvas(image: CanvasImageSource): CanvasImageSource {
  if (image instanceof HTMLCanvasElement || image instanceof HTMLImageElement) return image;
  const { width, height } = image as { width: number; height: number },
    canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d")?.drawImage(image, 0, 0);
  return canvas;
}

const TURN = 2 * Math.PI;

/** The context that records; its differences from svgcanvas are in the comment of this file. */
class Recorder extends (Context as unknown as new (size: object) => CanvasRenderingContext2D & {
  getSerializedSvg(): string;
  __currentElement: Element;
}) {
  fill(path?: Path2D | CanvasFillRule, rule?: CanvasFillRule): void {
    this.take(path);
    this.only("strokeStyle", () => super.fill());
    if ((rule ?? path) === "evenodd") this.__currentElement.setAttribute("fill-rule", "evenodd");
  }
  stroke(path?: Path2D): void {
    this.take(path);
    this.only("fillStyle", () => super.stroke());
  }
  clip(path?: Path2D | CanvasFillRule, rule?: CanvasFillRule): void {
    this.take(path);
    if ((rule ?? path) === "evenodd") this.__currentElement.setAttribute("clip-rule", "evenodd");
    super.clip();
  }
  arc(x: number, y: number, r: number, from: number, to: number, back = false): void {
    if (Math.abs(to - from) < TURN) super.arc(x, y, r, from, to, back);
    else this.ellipse(x, y, r, r, 0, from, to);
  }
  // A full turn in two halves, as one arc of SVG cannot end where it begins.
  ellipse(
    x: number,
    y: number,
    rx: number,
    ry: number,
    turn: number,
    from: number,
    to: number,
    back = false,
  ): void {
    if (Math.abs(to - from) < TURN) return super.ellipse(x, y, rx, ry, turn, from, to, back);
    super.ellipse(x, y, rx, ry, turn, from, from + Math.PI);
    super.ellipse(x, y, rx, ry, turn, from + Math.PI, from + TURN);
  }
  drawImage(image: CanvasImageSource, ...rest: number[]): void {
    (super.drawImage as (image: CanvasImageSource, ...values: number[]) => void)(
      asCanvas(image),
      ...rest,
    );
  }
  createPattern(image: CanvasImageSource, repetition: string | null): CanvasPattern | null {
    return super.createPattern(asCanvas(image), repetition);
  }

  // Make a Path2D the current path.
  private take(path?: Path2D | CanvasFillRule): void {
    if (typeof path !== "object") return;
    if (!(path instanceof RecordedPath))
      throw new TypeError("a Path2D that was made before the recording cannot be recorded");
    this.beginPath();
    for (const [name, ...values] of path.calls) (this[name] as (...v: number[]) => void)(...values);
  }

  // Call `paint` without the other style: svgcanvas would apply its gradient or pattern, too.
  private only(other: "fillStyle" | "strokeStyle", paint: () => void): void {
    const style = this[other];
    if (typeof style !== "string") this[other] = NONE;
    paint();
    this[other] = style;
  }
}

/** Return the SVG of what `draw` paints on a canvas of width x height CSS pixels. */
export function recordSvg(width: number, height: number, draw: (ctx: AnyContext) => void): string {
  const recorder = new Recorder({ width, height }),
    native = globalThis.Path2D;
  globalThis.Path2D = RecordedPath; // drawing is synchronous: nothing else sees it
  try {
    draw(recorder);
  } finally {
    globalThis.Path2D = native;
  }
  return recorder.getSerializedSvg();
}
