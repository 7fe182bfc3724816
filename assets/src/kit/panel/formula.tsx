// Formulas in panels, typeset by KaTeX (see ../formula/formula.ts).
import { h } from "preact";
import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { katex, syntaxTrees } from "../formula/formula.ts";
import type { Tree, Typesetter } from "../formula/formula.ts";

let loaded: Typesetter | null = null;

// A LaTeX formula: a display box, or a part of the line with `inline`. Until KaTeX is loaded it is
// empty; if KaTeX cannot be loaded it is the LaTeX source.
export function Formula({ latex, inline = false }: { latex: string; inline?: boolean }) {
  const [typeset, setTypeset] = useState<Typesetter | "missing" | null>(() => loaded);
  useEffect(() => {
    if (!typeset)
      katex().then(
        (found) => setTypeset(() => (loaded = found)),
        () => setTypeset("missing"),
      );
  }, []);
  const content = useMemo(
    () =>
      typeof typeset === "function"
        ? syntaxTrees(typeset, latex, inline).map(nodeOf)
        : typeset && latex,
    [typeset, latex, inline],
  );
  return h(
    inline ? "span" : "div",
    { class: inline ? "inline-formula" : "formula", "data-latex": latex },
    content,
  );
}

// Sentence whose formulas are enclosed in dollar signs.
export const Prose = ({ text }: { text: string }) => (
  <>{text.split("$").map((part, i) => (i % 2 ? <Formula key={i} latex={part} inline /> : part))}</>
);

function nodeOf(tree: Tree): VNode | string {
  if (tree.type === "text") return tree.value;
  const { className, ariaHidden, xmlns: _, ...others } = tree.properties;
  const attributes = {
    ...others,
    ...(className ? { class: [className].flat().join(" ") } : {}),
    ...(ariaHidden ? { "aria-hidden": String(ariaHidden) } : {}),
  };
  return h(tree.tagName, attributes, ...tree.children.map(nodeOf));
}
