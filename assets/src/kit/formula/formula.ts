// Formulas, typeset by the same KaTeX module as Streamlit's own pages
// (pages/shared/server/static_files.py knows its path): a plugin that replaces the math nodes of a
// syntax tree. The whole app has one typeface and one typesetter.
import { asset } from "../address.ts";
import { el } from "../dom.ts";

export type TextTree = { type: "text"; value: string };
export type Element = {
  type: "element";
  tagName: string;
  properties: Record<string, any>;
  children: Tree[];
};
export type Tree = TextTree | Element;
export type Typesetter = (
  root: { type: "root"; children: Tree[] },
  file: { message(): void },
) => void;

// attributes whose names differ between the tree and HTML
const ATTRIBUTES: Record<string, string> = { className: "class", ariaHidden: "aria-hidden" };
const SPACES: Record<string, string> = {
  math: "http://www.w3.org/1998/Math/MathML",
  svg: "http://www.w3.org/2000/svg",
};

let typesetter: Promise<Typesetter> | undefined;
// Load KaTeX once.
export const katex = () =>
  (typesetter ??= import(asset("kit/katex.js")).then((katexModule) => katexModule.default()));

// Return an element with one of our LaTeX formulas: a display box, or part of the line with
// `inline`. It is filled once KaTeX is loaded.
export function formula(latex: string, { inline = false }: { inline?: boolean } = {}) {
  const box = el(inline ? "span" : "div", {
    class: inline ? "inline-formula" : "formula",
    "data-latex": latex,
  });
  katex().then(
    (typeset) =>
      box.replaceChildren(...syntaxTrees(typeset, latex, inline).map((tree) => built(tree))),
    () => {
      box.textContent = latex;
    }, // fallback if KaTeX cannot be loaded
  );
  return box;
}

// Return the syntax trees of a typeset formula.
export function syntaxTrees(typeset: Typesetter, latex: string, inline: boolean) {
  const properties = { className: [inline ? "math-inline" : "math-display"] };
  const source = {
    type: "element",
    tagName: "span",
    properties,
    children: [{ type: "text", value: latex }],
  };
  const root = { type: "root" as const, children: [source as Tree] };
  typeset(root, { message() {} }); // KaTeX marks what it cannot parse in red (.katex-error)
  return root.children;
}

function built(tree: Tree, space: string = "http://www.w3.org/1999/xhtml"): string | Node {
  if (tree.type === "text") return tree.value;
  const within = SPACES[tree.tagName] ?? space,
    node = document.createElementNS(within, tree.tagName);
  for (const [name, value] of Object.entries(tree.properties)) {
    // a content security policy may forbid style attributes
    if (name === "style") (node as HTMLElement).style.cssText = value;
    else if (name !== "xmlns")
      node.setAttribute(ATTRIBUTES[name] ?? name, [value].flat().join(" "));
  }
  node.append(...tree.children.map((child) => built(child, within)));
  return node;
}
