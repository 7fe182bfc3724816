"""Markdown extension that writes formulas ($...$, $$...$$) as MathML, which browsers render without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

# Commands that latex2mathml lacks, in terms of those it has.
REPLACED = {r"\lVert": r"\Vert", r"\rVert": r"\Vert", r"\tfrac": r"\frac", r"\dfrac": r"\frac", r"\diff": ""}
FORMULA = r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?![\w$])"


class Formula(InlineProcessor):
    """Inline processor that replaces one formula by a MathML element."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        """Return the element as stored raw HTML and the span it replaces."""
        latex = m[1] or m[2]
        for command, replacement in REPLACED.items():
            latex = re.sub(re.escape(command) + r"(?![A-Za-z])", lambda _, text=replacement: text, latex)
        markup = convert(latex.strip(), display="block" if m[1] else "inline")
        return self.md.htmlStash.store(markup), m.start(0), m.end(0)


class MathML(Extension):
    """Markdown extension that registers the inline pattern before escapes and emphasis, but after code spans."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the inline pattern."""
        md.inlinePatterns.register(Formula(FORMULA, md), "mathml", 185)


def makeExtension(**_: object) -> MathML:
    """Return the extension."""
    return MathML()
