// Words about the figure of a page as it is shown: the loss chosen, and the caption.
import type { Presentation } from "../types.ts";

// Return the menus of losses on the page.
export const lossMenus = (whole: HTMLElement) => [
  ...whole.querySelectorAll<HTMLSelectElement>('select[aria-label^="loss"]'),
];

// Return the titles of the losses that the page shows, e.g. "Ranking and Ratio", each once.
export const lossOf = (whole: HTMLElement) =>
  [...new Set(lossMenus(whole).map((menu) => menu.selectedOptions[0]?.text ?? ""))].join(" and ");

// Return the verdict, or the sentence of the preset or lesson shown, otherwise the caption of the
// page.
export const captionOf = (whole: HTMLElement, about?: Presentation | null) =>
  [".verdict p", ".lessons p.caption, p.caption[aria-live]:not(.hint)"]
    .map((selector) => whole.querySelector(selector)?.textContent?.trim())
    .find(Boolean) ??
  about?.caption.replace("{loss}", lossOf(whole)) ??
  "";
