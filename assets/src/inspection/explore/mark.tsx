// Marks of values next to their names, as the painters draw them.
import { useLayoutEffect, useRef } from "preact/hooks";
import { drawing } from "../../kit/dom.ts";
import { shape } from "../../kit/plot.ts";

export function Mark({ kind, colour }: { kind: string; colour: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    if (!canvas.current) return;
    const ctx = drawing(canvas.current);
    ctx.setTransform(2, 0, 0, 2, 0, 0);
    ctx.clearRect(0, 0, 14, 14);
    shape(ctx, kind, 7, 7, 5);
    ctx.fillStyle = colour;
    ctx.fill();
  }, [kind, colour]);
  return <canvas ref={canvas} width={28} height={28} aria-hidden="true" />;
}
