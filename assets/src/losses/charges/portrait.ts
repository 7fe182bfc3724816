// Phase portrait of the charges: density of triplets by their two distances, with its sentences.
import { signal } from "@preact/signals";
import type { Theme } from "../../kit/types.ts";
import type { Portrait } from "./types.ts";
import { drawing } from "../../kit/dom.ts";
import { paintPortrait } from "./draw.ts";

export class PortraitView {
  canvas: HTMLCanvasElement;
  text = signal("");
  noOuter = signal(true); // the clamp line is not there
  noInner = signal(true);
  painted: Portrait | null = null;

  setCanvas = (canvas: HTMLCanvasElement | null) => {
    if (canvas) this.canvas = canvas;
  };

  // Paint again at the next call of `paint`.
  forget() {
    this.painted = null;
  }

  paint(portrait: Portrait, theme: Theme) {
    if (this.painted === portrait) return;
    this.painted = portrait;
    const { canvas } = this,
      { clientWidth, clientHeight } = canvas;
    paintPortrait(drawing(canvas), clientWidth, clientHeight, portrait, theme);
    const share = shareText(portrait),
      note = assumptions(portrait);
    this.noOuter.value = !portrait.outer.length;
    this.noInner.value = !portrait.inner.length;
    this.text.value = [share, "Stronger colour: more triplets (logarithmic scale).", note]
      .filter(Boolean)
      .join(" ");
    canvas.setAttribute(
      "aria-label",
      `phase portrait over distances 0 to ${portrait.reach}: ${share} ${note}`,
    );
  }
}

const shareText = ({ violated, valid }: Portrait) =>
  `${(100 * violated).toFixed(1)} % of ${valid.toLocaleString("en")} triplets have a negative nearer than the positive.`;

// Return what the clamp lines assume where the loss depends on more than two distances.
function assumptions({ third_edge, norms }: Portrait) {
  const assumed = [third_edge && "d(p, n) = d(a, n)", norms && "|a| = |p| = |n| = 1"];
  return assumed.some(Boolean)
    ? `This loss depends on more than these two distances; its lines assume ${assumed.filter(Boolean).join(" and ")}.`
    : "";
}
