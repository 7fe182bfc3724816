"""Markdown extension that converts formulas ($...$, $$...$$) to MathML, which browsers render without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

# LaTeX commands that latex2mathml does not support, and their replacements.
REPLACED = {r"\lVert": r"\Vert", r"\rVert": r"\Vert", r"\tfrac": r"\frac", r"\dfrac": r"\frac", r"\diff": ""}
FORMULA = r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?![\w$])"


class Formula(InlineProcessor):
    """Inline processor that replaces one formula with a MathML element."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        """Store the MathML element as raw HTML; return its placeholder, and start and end of the replaced text."""
        latex = m[1] or m[2]
        for command, replacement in REPLACED.items():
            latex = re.sub(re.escape(command) + r"(?![A-Za-z])", lambda _, text=replacement: text, latex)
        markup = convert(latex.strip(), display="block" if m[1] else "inline")
        return self.md.htmlStash.store(markup), m.start(0), m.end(0)


class MathML(Extension):
    """Markdown extension that registers the formula pattern before escapes and emphasis, but after code spans."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the formula pattern with the Markdown parser."""
        md.inlinePatterns.register(Formula(FORMULA, md), "mathml", 185)


def makeExtension(**_: object) -> MathML:
    """Return the extension; Python-Markdown calls this function by its name."""
    return MathML()
