// Formulas, typeset by what Streamlit's own pages use (pages/shared/server/static_files.py says
// where it lies):
// KaTeX behind a plugin that turns a tree into a tree. One face in the whole app, and no second
// typesetter.
import { el } from "./dom.js";

/** @typedef {{ type: "text", value: string }} TextTree */
/** @typedef {{ type: "element", tagName: string, properties: Record<string, any>, children: Tree[] }} Element */
/** @typedef {TextTree | Element} Tree */
/** @typedef {(root: { type: "root", children: Tree[] }, file: { message(): void }) => void} Typesetter */

// where the tree's names differ
/** @type {Record<string, string>} */
const ATTRIBUTES = { className: "class", ariaHidden: "aria-hidden" };
/** @type {Record<string, string>} */
const SPACES = { math: "http://www.w3.org/1998/Math/MathML", svg: "http://www.w3.org/2000/svg" };

/** @type {Promise<Typesetter> | undefined} */
let typesetter;
const katex = () => (typesetter ??= import("./katex.js").then((module) => module.default()));

// Our own LaTeX in a box of its own, or with `inline` in the line; the box fills once KaTeX is
// here.
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
    }, // what is left where KaTeX cannot be had
  );
  return box;
}

// A sentence whose formulas stand between dollar signs.
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
  typeset(root, { message() {} }); // what it cannot read it sets in red (.katex-error)
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
    // a content policy may forbid the attribute
    if (name === "style") /** @type {HTMLElement} */ (node).style.cssText = value;
    else if (name !== "xmlns")
      node.setAttribute(ATTRIBUTES[name] ?? name, [value].flat().join(" "));
  }
  node.append(...tree.children.map((child) => built(child, within)));
  return node;
}
