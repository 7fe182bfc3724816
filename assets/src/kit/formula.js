// Formulas, typeset by the same KaTeX module as Streamlit's own pages
// (pages/shared/server/static_files.py knows its path): a plugin that replaces the math nodes of a
// syntax tree. The whole app has one typeface and one typesetter.
import { el } from "./dom.js";

/** @typedef {{ type: "text", value: string }} TextTree */
/** @typedef {{ type: "element", tagName: string, properties: Record<string, any>, children: Tree[] }} Element */
/** @typedef {TextTree | Element} Tree */
/** @typedef {(root: { type: "root", children: Tree[] }, file: { message(): void }) => void} Typesetter */

// attributes whose names differ between the tree and HTML
/** @type {Record<string, string>} */
const ATTRIBUTES = { className: "class", ariaHidden: "aria-hidden" };
/** @type {Record<string, string>} */
const SPACES = { math: "http://www.w3.org/1998/Math/MathML", svg: "http://www.w3.org/2000/svg" };

/** @type {Promise<Typesetter> | undefined} */
let typesetter;
const katex = () => (typesetter ??= import("./katex.js").then((module) => module.default()));

// Return an element with one of our LaTeX formulas: a display box, or part of the line with
// `inline`. It is filled once KaTeX is loaded.
/**
 * @param {string} latex
 * @param {{ inline?: boolean }} [options]
 */
export function formula(latex, { inline = false } = {}) {
  const box = el(inline ? "span" : "div", {
    class: inline ? "inline-formula" : "formula",
    "data-latex": latex,
  });
  katex().then(
    (typeset) => box.replaceChildren(...trees(typeset, latex, inline).map((tree) => built(tree))),
    () => {
      box.textContent = latex;
    }, // fallback if KaTeX cannot be loaded
  );
  return box;
}

// Return the nodes of a sentence whose formulas are enclosed in dollar signs.
/** @param {string} text */
export const prose = (text) =>
  text.split("$").map((part, i) => (i % 2 ? formula(part, { inline: true }) : part));

/**
 * @param {Typesetter} typeset
 * @param {string} latex
 * @param {boolean} inline
 */
function trees(typeset, latex, inline) {
  const properties = { className: [inline ? "math-inline" : "math-display"] };
  const source = {
    type: "element",
    tagName: "span",
    properties,
    children: [{ type: "text", value: latex }],
  };
  const root = { type: /** @type {const} */ ("root"), children: [/** @type {Tree} */ (source)] };
  typeset(root, { message() {} }); // KaTeX marks what it cannot parse in red (.katex-error)
  return root.children;
}

/**
 * @param {Tree} tree
 * @param {string} [space]
 * @returns {string | Node}
 */
function built(tree, space = "http://www.w3.org/1999/xhtml") {
  if (tree.type === "text") return tree.value;
  const within = SPACES[tree.tagName] ?? space,
    node = document.createElementNS(within, tree.tagName);
  for (const [name, value] of Object.entries(tree.properties)) {
    // a content security policy may forbid style attributes
    if (name === "style") /** @type {HTMLElement} */ (node).style.cssText = value;
    else if (name !== "xmlns")
      node.setAttribute(ATTRIBUTES[name] ?? name, [value].flat().join(" "));
  }
  node.append(...tree.children.map((child) => built(child, within)));
  return node;
}
