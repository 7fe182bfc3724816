// Helpers for every component: elements, number formats, the page's theme.
/** @import { Attributes, Child, Theme } from "./types.js" */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function")
      node.addEventListener(key.slice(2), /** @type {EventListener} */ (value));
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(key, String(value));
  }
  node.append(...children);
  return node;
}

/**
 * Return a div with the given class.
 *
 * @param {string} name
 * @param {...Child} children
 */
export const div = (name, ...children) => el("div", { class: name }, ...children);

// Return true if the visitor prefers reduced motion.
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** @type {Record<string, string>} */
const GREEK = {
  "\\rho": "ρ",
  "\\mu": "μ",
  "\\gamma": "γ",
  "\\beta": "β",
  "\\tau": "τ",
  "\\alpha": "α",
  "\\epsilon": "ε",
  "\\varepsilon": "ε",
  "\\lambda": "λ",
  "\\sigma": "σ",
  "\\delta": "δ",
  "\\eta": "η",
  "\\theta": "θ",
  "\\kappa": "κ",
};
/** @param {string} text LaTeX: a letter, perhaps with an index */
export function symbol(text) {
  const [base, sub] = text.split("_");
  return [GREEK[base] ?? base, ...(sub ? [el("sub", {}, sub)] : [])];
}

/**
 * @template {HTMLCanvasElement | OffscreenCanvas} C
 * @param {C} canvas
 * @param {CanvasRenderingContext2DSettings} [settings]
 */
export function drawing(canvas, settings) {
  const context = canvas.getContext("2d", settings);
  if (!context) throw new TypeError("this canvas is not drawn on in two dimensions");
  return /** @type {C extends HTMLCanvasElement ? CanvasRenderingContext2D : OffscreenCanvasRenderingContext2D} */ (
    context
  );
}

/** @param {number | null} [x] */
export const tidy = (x) => (x === null || x === undefined ? "" : String(Number(x.toFixed(4))));
/** @param {number | null} [x] */
export const show = (x) =>
  x === null || x === undefined ? "∞" : Math.abs(x) >= 1000 ? x.toExponential(2) : x.toFixed(3);

// Return the state of a triplet as one word. f = {hit: true if it receives a force, raw: its loss
// before the clamp, null if infinite}.
/** @param {{ hit: boolean, raw: number | null }} f */
export const stateOf = (f) =>
  f.hit ? "active" : f.raw !== null && f.raw <= 0 ? "satisfied" : "clamped";

// Set the text only if it differs, so that selections and screen readers are not disturbed.
/**
 * @param {Node | null} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node && node.textContent !== text) node.textContent = text;
}

// Show names with their values [[name, text], ...]; elements are reused when the numbers change.
/**
 * @param {Element} box
 * @param {[name: string, text: string][]} rows
 */
export function readouts(box, rows) {
  if (box.children.length !== rows.length)
    box.replaceChildren(
      ...rows.map(([name]) =>
        el("div", {}, el("span", {}, name), el("b", { "data-readout": name })),
      ),
    );
  rows.forEach(([, text], i) => setText(box.children[i].lastChild, text));
}

// Return "light" or "dark" from the colours that Streamlit passes to components, and set --accent
// for native controls.
/**
 * @param {ParentNode} root
 * @param {HTMLElement} whole
 * @returns {Theme}
 */
export function applyTheme(root, whole) {
  const probe = el("span", { style: "color: var(--st-background-color)" });
  root.append(probe);
  const [r, g, b] = (getComputedStyle(probe).color.match(/[\d.]+/g) ?? []).map(Number);
  probe.remove();
  const theme = r + g + b < 384 ? "dark" : "light";
  whole.style.colorScheme = theme;
  // On dark pages Chromium gives a dark accent colour a glaring white track.
  whole.style.setProperty("--accent", theme === "dark" ? "#56B4E9" : "var(--st-primary-color)");
  return theme;
}

// Add style sheets to a component's root and wait for them, so that nothing is shown unstyled.
/**
 * @param {ParentNode} root
 * @param {...string} addresses
 */
export function styled(root, ...addresses) {
  return Promise.all(
    addresses.map(
      (href) =>
        new Promise((resolve) => {
          const link = el("link", { rel: "stylesheet", href });
          link.onload = link.onerror = resolve;
          root.append(link);
        }),
    ),
  );
}

/**
 * @param {string} name
 * @param {Blob | null} blob
 */
export function save(name, blob) {
  if (!blob) return; // canvas without size
  const address = URL.createObjectURL(blob),
    link = el("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// parameters about the display, not about the state
const HANDED_ON = ["hide", "socket", "present"];

/**
 * Return the address of another page, including the parameters of the current address that apply
 * there too.
 *
 * @param {string} page
 * @param {string} query of the other page's state
 */
export function onward(page, query) {
  const named = new URLSearchParams(query),
    more = [...new URLSearchParams(location.search)].filter(
      ([name]) => HANDED_ON.includes(name) && !named.has(name),
    ),
    text = [query, new URLSearchParams(more).toString()].filter(Boolean).join("&");
  return page + (text && `?${text}`);
}

const LECTURE = ["present", "controls"]; // parameters of presentation mode, valid for any address

/**
 * Show a state in the address bar, next to the parameters that belong to no state. In lessons
 * `step` is the step of the lesson, so the step of a figure is called `frame` there.
 *
 * @param {string} query query string of the state
 * @param {readonly string[]} kept names of the other parameters to keep
 */
export function writeAddress(query, kept) {
  const address = new URLSearchParams(location.search),
    lesson = address.has("lesson"),
    stays = lesson ? [...kept, "lesson", "step"] : kept,
    others = [...address].filter(([name]) => stays.includes(name) || LECTURE.includes(name)),
    state = lesson ? query.replace(/(^|&)step=/, "$1frame=") : query,
    text = [state, new URLSearchParams(others).toString()].filter(Boolean).join("&");
  history.replaceState(history.state, "", location.pathname + (text && `?${text}`) + location.hash);
}
