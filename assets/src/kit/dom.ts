// Helpers for every component: elements, number formats, the page's theme.
import type { Attributes, Child, Theme } from "./types.ts";

export function el<T extends keyof HTMLElementTagNameMap>(
  tag: T,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[T] {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key.slice(2), value as EventListener);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(key, String(value));
  }
  node.append(...children);
  return node;
}

// Return a div with the given class.
export const div = (name: string, ...children: Child[]) => el("div", { class: name }, ...children);

// Return true if the visitor prefers reduced motion.
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

const GREEK: Record<string, string> = {
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
// Return a LaTeX letter as plain text, and its index if it has one.
export function symbolParts(latex: string): [base: string, index?: string] {
  const [base, index] = latex.split("_");
  return [GREEK[base] ?? base, index];
}

// text: LaTeX: a letter, perhaps with an index
export function symbol(text: string) {
  const [base, index] = symbolParts(text);
  return [base, ...(index ? [el("sub", {}, index)] : [])];
}

export function drawing<C extends HTMLCanvasElement | OffscreenCanvas>(
  canvas: C,
  settings?: CanvasRenderingContext2DSettings,
) {
  const context = canvas.getContext("2d", settings);
  if (!context) throw new TypeError("this canvas is not drawn on in two dimensions");
  return context as C extends HTMLCanvasElement
    ? CanvasRenderingContext2D
    : OffscreenCanvasRenderingContext2D;
}

// Return true if the drawing is recorded as a vector graphic (figure/svg.ts): images stay pixels there.
export const isVector = (ctx: object) => "vector" in ctx;

export const tidy = (x?: number | null) =>
  x === null || x === undefined ? "" : String(Number(x.toFixed(4)));
export const show = (x?: number | null) =>
  x === null || x === undefined ? "∞" : Math.abs(x) >= 1000 ? x.toExponential(2) : x.toFixed(3);

// Return the state of a triplet as one word. f = {hit: true if it receives a force, raw: its loss
// before the clamp, null if infinite}.
export const stateOf = (f: { hit: boolean; raw: number | null }) =>
  f.hit ? "active" : f.raw !== null && f.raw <= 0 ? "satisfied" : "clamped";

// Set the text only if it differs, so that selections and screen readers are not disturbed.
export function setText(node: Node | null, text: string) {
  if (node && node.textContent !== text) node.textContent = text;
}

// Show names with their values [[name, text], ...]; elements are reused when the numbers change.
export function readouts(box: Element, rows: [name: string, text: string][]) {
  if (box.children.length !== rows.length)
    box.replaceChildren(
      ...rows.map(([name]) =>
        el("div", {}, el("span", {}, name), el("b", { "data-readout": name })),
      ),
    );
  rows.forEach(([, text], i) => setText(box.children[i].lastChild, text));
}

// Return "light" or "dark" from the colours that Streamlit passes to components.
export function applyTheme(root: ParentNode, whole: HTMLElement): Theme {
  const probe = el("span", { style: "color: var(--st-background-color)" });
  root.append(probe);
  const [r, g, b] = (getComputedStyle(probe).color.match(/[\d.]+/g) ?? []).map(Number);
  probe.remove();
  const theme = r + g + b < 384 ? "dark" : "light";
  whole.style.colorScheme = theme;
  return theme;
}

// Add style sheets to a component's root and wait for them, so that nothing is shown unstyled.
export function styled(root: ParentNode, ...addresses: string[]) {
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

export function save(name: string, blob: Blob | null) {
  if (!blob) return; // canvas without size
  const address = URL.createObjectURL(blob),
    link = el("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// parameters about the display, not about the state
const HANDED_ON = ["hide", "socket", "present"];

// Return the address of another page, including the parameters of the current address that apply
// there too.
// query: of the other page's state
export function onward(page: string, query: string) {
  const named = new URLSearchParams(query),
    more = [...new URLSearchParams(location.search)].filter(
      ([name]) => HANDED_ON.includes(name) && !named.has(name),
    ),
    text = [query, new URLSearchParams(more).toString()].filter(Boolean).join("&");
  return page + (text && `?${text}`);
}

const LECTURE = ["present", "controls"]; // parameters of presentation mode, valid for any address

// Show a state in the address bar, next to the parameters that belong to no state. In lessons
// `step` is the step of the lesson, so the step of a figure is called `frame` there.
// query: query string of the state
// kept: names of the other parameters to keep
export function writeAddress(query: string, kept: readonly string[]) {
  const address = new URLSearchParams(location.search),
    lesson = address.has("lesson"),
    stays = lesson ? [...kept, "lesson", "step"] : kept,
    others = [...address].filter(([name]) => stays.includes(name) || LECTURE.includes(name)),
    state = lesson ? query.replace(/(^|&)step=/, "$1frame=") : query,
    text = [state, new URLSearchParams(others).toString()].filter(Boolean).join("&");
  history.replaceState(history.state, "", location.pathname + (text && `?${text}`) + location.hash);
}
