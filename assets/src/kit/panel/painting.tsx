// Canvases within a panel that show numbers and have no points to drag (those are figures, see
// ../figure/figure.ts).
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { effect, useSignal } from "@preact/signals";
import { drawing } from "../dom.ts";
import { fit } from "../screen.ts";

export type Paint = (ctx: CanvasRenderingContext2D, width: number, height: number) => void;
type Attributes = Omit<JSX.IntrinsicElements["canvas"], "ref">;

// Canvas, hidden from screen readers unless it has a label, at the resolution of the screen. `paint` draws it with its size in CSS pixels after each
// rendering that passes another function, whenever a signal that it reads changes, and whenever the
// size changes.
export function Painting({ paint, ...attributes }: Attributes & { paint: Paint }) {
  const canvas = useRef<HTMLCanvasElement>(null),
    resized = useSignal(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => resized.value++);
    if (canvas.current) observer.observe(canvas.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(
    () =>
      effect(() => {
        const { current } = canvas;
        if (resized.value < 0 || !current?.clientWidth) return;
        fit([current]);
        paint(drawing(current), current.clientWidth, current.clientHeight);
      }),
    [paint],
  );
  return <canvas ref={canvas} aria-hidden={!attributes["aria-label"]} {...attributes} />;
}

// Return a ref for an element and a signal of its width in CSS pixels, 0 until it is laid out.
export function useWidth<E extends HTMLElement>() {
  const element = useRef<E>(null),
    width = useSignal(0);
  useLayoutEffect(() => {
    const measure = () => {
      width.value = element.current?.clientWidth ?? 0;
    };
    const observer = new ResizeObserver(measure);
    measure();
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width] as const;
}
