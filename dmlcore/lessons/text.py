"""Text of a lesson (Markdown with paragraphs, lists, emphasis and formulas), converted to HTML and to plain text."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

FORMULA = re.compile(r"\$([^$\n]+)\$")
KNOWN = {"paragraph", "bullet_list", "list_item", "strong", "em", "inline", "text", "softbreak", "code_inline"}
_MARKDOWN = MarkdownIt("commonmark", {"html": False})
_MARK = re.compile("\ue000(\\d+)\ue001")  # placeholder of private-use characters, which no text contains
_SIZE = 11  # font size of formulas in HTML, in points


def complaints(text: str) -> Iterator[str]:
    """Yield a message for each Markdown construct and formula that handouts do not support."""
    for token in _all(_MARKDOWN.parse(_without_formulas(text)[0])):
        name = token.type.removesuffix("_open").removesuffix("_close")
        if name not in KNOWN:
            yield f"no {name.replace('_', ' ')} in a text: paragraphs, lists, **bold**, *italics* and $formulas$ only"
    for latex in FORMULA.findall(text):
        try:
            _svg(latex)
        except ValueError as error:
            yield f"the formula ${latex}$ cannot be set: {str(error).strip().splitlines()[-1]}"
    if text.count("$") % 2:
        yield "a $ is open: a formula stands between two of them"


def _all(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or [])


def as_html(text: str) -> str:
    """Return the text as HTML, with formulas as inline SVG images."""
    marked, formulas = _without_formulas(text)
    rendered: str = _MARKDOWN.render(marked)
    return _MARK.sub(lambda match: _inline(formulas[int(match[1])]), rendered)


def _without_formulas(text: str) -> tuple[str, list[str]]:
    """Replace each formula with a placeholder, so that its underscores are not read as emphasis.

    Returns the new text and the formulas.
    """
    formulas = FORMULA.findall(text)
    numbers = iter(range(len(formulas)))
    return FORMULA.sub(lambda _: f"\ue000{next(numbers)}\ue001", text), formulas


def _inline(latex: str) -> str:
    svg, depth = _svg(latex)
    label = html.escape(latex, quote=True)
    return f'<span class="formula" role="img" aria-label="{label}" style="vertical-align:{-depth:.1f}pt">{svg}</span>'


@cache
def _svg(latex: str) -> tuple[str, float]:
    """Render a formula; return its SVG and its depth below the baseline in points.

    Raises ValueError if the formula cannot be rendered.
    """
    from matplotlib import font_manager, mathtext

    from dmlcore.figures.fields import figure_style

    file = io.BytesIO()
    with figure_style():
        font = font_manager.FontProperties(size=_SIZE)
        depth = mathtext.math_to_image(f"${latex}$", file, prop=font, format="svg", dpi=72)
    text = file.getvalue().decode()
    return re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.DOTALL), float(depth)


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs for print: without emphasis, list items with bullets, formulas unchanged."""
    marked, formulas = _without_formulas(text)
    written, item = [], False
    for token in _MARKDOWN.parse(marked):
        item = item or token.type == "list_item_open"
        if token.type == "inline":
            words = "".join(" " if each.type == "softbreak" else each.content for each in token.children or [])
            words = _MARK.sub(lambda match: f"${formulas[int(match[1])]}$", words)
            written.append(f"•  {words}" if item else words)
            item = False
    return written
