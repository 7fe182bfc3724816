// Small things every component needs: elements, numbers, the page's theme.
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
 * A part of a page, by its class.
 *
 * @param {string} name
 * @param {...Child} children
 */
export const div = (name, ...children) => el("div", { class: name }, ...children);

// Whether the visitor has asked that nothing moves by itself.
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

// What a triplet is, in a word: f = {hit: whether it feels a force, raw: its loss before the clamp,
// null where infinite}.
/** @param {{ hit: boolean, raw: number | null }} f */
export const stateOf = (f) =>
  f.hit ? "active" : f.raw !== null && f.raw <= 0 ? "satisfied" : "clamped";

// Touched only where it changes: neither a selection in it nor those who listen to it are
// disturbed.
/**
 * @param {Node | null} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node && node.textContent !== text) node.textContent = text;
}

// Names with their values [[name, text], ...]; the elements stay while the numbers change.
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

// "light" or "dark", read from the colours Streamlit hands to components; native controls follow
// through --accent.
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
  // On the dark page Chromium gives a dark accent a glaring white track.
  whole.style.setProperty("--accent", theme === "dark" ? "#56B4E9" : "var(--st-primary-color)");
  return theme;
}

// Adds the style sheets to a component's root and waits for them, so that nothing flashes unstyled.
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
  if (!blob) return; // a canvas without room
  const address = URL.createObjectURL(blob),
    link = el("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const HANDED_ON = ["hide", "socket", "present"]; // how pages are shown, not what

/**
 * The address of another page, with what of the address shown holds there too.
 *
 * @param {string} page
 * @param {string} query of its state
 */
export function onward(page, query) {
  const named = new URLSearchParams(query),
    more = [...new URLSearchParams(location.search)].filter(
      ([name]) => HANDED_ON.includes(name) && !named.has(name),
    ),
    text = [query, new URLSearchParams(more).toString()].filter(Boolean).join("&");
  return page + (text && `?${text}`);
}

const LECTURE = ["present", "controls"]; // of any address: the picture over the window

/**
 * Show a state in the address bar, beside the parameters of the address that belong to no state.
 * In a lesson `step` is that of the lesson, so the time of a figure is called `frame` there.
 *
 * @param {string} query of the state
 * @param {readonly string[]} kept names of the others that stay
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
