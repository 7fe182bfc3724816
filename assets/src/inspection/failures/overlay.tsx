// Layers over the plane of a real triplet: images next to the points, the circle of the sphere, and
// the ends of one step.
import { render } from "preact";
import { useComputed, signal } from "@preact/signals";
import type { Frame } from "../../kit/figure/spec.ts";
import type { Fields } from "../../kit/plane/plane.ts";
import type { Context } from "../../kit/types.ts";
import { POINTS } from "../../kit/colours.ts";
import { div } from "../../kit/dom.ts";
import { reach } from "../../kit/plane/forces.ts";
import { along, placeThumbnails } from "./thumbnails.ts";

export class Overlay {
  readonly images = signal<readonly string[]>([]); // addresses: anchor, positive, negative
  readonly hidden = signal(false); // the images
  private readonly places = signal<number[][]>([]);
  private readonly app: Fields;

  constructor(app: Fields) {
    const box = div("thumbs");
    this.app = app;
    render(<Thumbs {...this} places={this.places} />, box);
    app.figure.canvas.after(box);
  }

  /**
   * Draw the layers, and put the images next to the points.
   * radius: of the unit sphere in the plane; ends: of the step on each point
   */
  draw(
    ctx: Context,
    frame: Frame,
    radius: number | null,
    ends: readonly number[][] | null | undefined,
  ): void {
    const { figure, scene } = this.app,
      { view, ink, exported } = frame,
      points = POINTS.map((name) => view.to(scene[name]));
    if (radius) {
      ctx.strokeStyle = ink.text;
      ctx.lineWidth = 1.5;
      ctx.setLineDash([2, 5]);
      ctx.beginPath();
      ctx.arc(...view.to([0, 0]), radius * view.scale, 0, 2 * Math.PI);
      ctx.stroke();
    }
    if (ends && !figure.busy?.classList.contains("handle")) drawEnds(ctx, frame, points, ends);
    ctx.setLineDash([]);
    if (exported) return;
    // Images keep their places during a gesture.
    const marks = figure.busy ? [] : this.marks(points, ends ?? []);
    this.places.value = placeThumbnails(points, view.width, marks);
  }

  // Return points on force arrows and at the ends of the step, which images leave free.
  private marks(points: number[][], ends: readonly number[][]): number[][] {
    const { field, scene, figure, forceScale } = this.app,
      { view } = figure;
    if (!field) return [];
    const tips = field.forces.map(([fx, fy], i) => {
      const size = Math.hypot(fx, fy);
      if (scene.forces === false || !(size > 1e-9)) return null;
      const far = reach(size, view.width, scene.edges ? forceScale : null) / size;
      return [points[i][0] + far * fx, points[i][1] - far * fy];
    });
    return [...along(points, tips), ...ends.map((end) => view.to(end))];
  }
}

function drawEnds(
  ctx: Context,
  { view, ink }: Frame,
  points: [number, number][],
  ends: readonly number[][],
) {
  POINTS.forEach((name, i) => {
    const [x, y] = view.to(ends[i]);
    ctx.strokeStyle = ink[name];
    ctx.lineWidth = 1.5;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(...points[i]);
    ctx.lineTo(x, y);
    ctx.stroke();
    ctx.lineWidth = 2;
    ctx.setLineDash([]);
    ctx.beginPath();
    if (name === "negative") ctx.rect(x - 6, y - 6, 12, 12);
    else ctx.arc(x, y, 6.5, 0, 2 * Math.PI);
    ctx.stroke();
  });
}

type ThumbsProps = Pick<Overlay, "images" | "hidden"> & { places: { value: number[][] } };

const Thumbs = (props: ThumbsProps) => (
  <>
    {POINTS.map((name, i) => (
      <Thumb key={name} {...props} kind={name} index={i} />
    ))}
  </>
);

function Thumb({
  images,
  hidden,
  places,
  kind,
  index,
}: ThumbsProps & { kind: string; index: number }) {
  const source = useComputed(() => images.value[index]),
    style = useComputed(() => {
      const [x, y] = places.value[index] ?? [0, 0];
      return `transform: translate(${x}px, ${y}px)`;
    });
  return (
    <img
      class={`thumb ${kind}`}
      alt=""
      draggable={false}
      src={source}
      style={style}
      hidden={hidden}
    />
  );
}
