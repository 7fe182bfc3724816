// Links to export a view: files that Python makes from its link (pages/shared/server/exports.py).
import { el } from "./dom.js";

/** @type {Record<string, string>} */
const FORMATS = {
  svg: "SVG",
  pdf: "PDF",
  npz: "arrays (npz)",
  json: "arrays (JSON)",
  py: "Python",
};

// Return links to `base`api/`page`/export.*; `query` is called when a link is used, so that the
// file shows the current view.
/**
 * @param {string} base
 * @param {string} page
 * @param {() => string} query
 * @param {Record<string, string>} [formats]
 */
export function exportLinks(base, page, query, formats = FORMATS) {
  return Object.entries(formats).map(([format, text]) => {
    const link = el("a", { class: "button", download: "", "data-format": format }, text);
    const address = () => {
      link.href = new URL(`${base}api/${page}/export.${format}?${query()}`, location.href).href;
    };
    for (const event of ["pointerdown", "focus", "click"]) link.addEventListener(event, address);
    address();
    return link;
  });
}
