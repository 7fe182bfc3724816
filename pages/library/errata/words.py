"""Text of the errata: highlighted differences in LaTeX, escaped Markdown with formulas, and a Python script."""

from __future__ import annotations

import math
import re

from dmlcore.published import checks
from dmlcore.published.errata import Erratum
from dmlcore.published.printed_formulas import COUNTEREXAMPLES, POINTS
from pages.library.errata.state import Example

ROUNDING = 1e-10


def marked(latex: str, colour: str) -> str:
    r"""Return LaTeX in which each \diff{...}, which must not be nested, is underlined and printed in `colour`."""
    plain, *pieces = latex.split(r"\diff{")
    for piece in pieces:
        depth, end = 1, 0
        while depth:
            depth += (piece[end] == "{") - (piece[end] == "}")
            end += 1
        plain += rf"\textcolor{{{colour}}}{{\underline{{{piece[: end - 1]}}}}}{piece[end:]}"
    return plain


# A letter (or grad) with an index, as in d_ap², e^d_an, grad_p; names of losses have more letters before the
# underscore.
_INDEXED = re.compile(r"(e\^)?(?<![A-Za-z_])(grad|[A-Za-z])_([A-Za-z0-9α-ω]+)(?![A-Za-z0-9α-ω_])([²³])?")


def literal(text: str) -> str:
    """Escape Markdown characters in a text, and write letters with an index, such as d_ap, as formulas."""
    out, at = [], 0
    for formula in _INDEXED.finditer(text):
        out += [_plain(text[at : formula.start()]), _formula(*formula.groups())]
        at = formula.end()
    plain = "".join(out) + _plain(text[at:])
    return "\\" + plain if plain.startswith(("- ", "+ ")) else plain  # not a list item


def _formula(exponential: str | None, letter: str, index: str, power: str | None) -> str:
    base = r"\nabla" if letter == "grad" else letter
    index = index if len(index) <= 2 else rf"\text{{{index}}}"
    raised = f"^{'²³'.index(power) + 2}" if power else ""
    return f"$e^{{{base}_{{{index}}}}}$" if exponential else f"${base}_{{{index}}}{raised}$"


def _plain(text: str) -> str:
    for sign in ("*", "_", "~", "|", "$", "[", "<"):
        text = text.replace(sign, "\\" + sign)
    return text


def snippet(scene: Example) -> str:
    """Return a Python script that computes the printed and the correct gradients at the triplet of `scene`."""
    shown = COUNTEREXAMPLES[scene.number]
    hyper = {k: v for k, v in scene.hyper.items() if k in shown.sliders or k in (shown.hyper or {})}
    triplet = ", ".join(str(list(getattr(scene, name))) for name in POINTS)
    return (
        "import torch\n"
        "from dmlcore.published.printed_formulas import COUNTEREXAMPLES, compare\n\n"
        f"a, p, n = torch.tensor([{triplet}], dtype=torch.float64)\n"
        f"found = compare(COUNTEREXAMPLES[{scene.number}], a, p, n, {hyper!r})\n"
        "print(found.printed, found.true, found.difference, sep='\\n')\n"
    )


def computed_as_stated(value: float, stated: str) -> str:
    """Format a computed value with two more decimals than `stated`, or without decimals if both are integers."""
    if "e" in stated:
        return f"{value:.4e}"
    digits = len(stated.partition(".")[2])
    if not digits and float(value).is_integer():
        return str(round(value))
    return f"{value + 0.0:.{digits + 2 if digits else 4}f}".replace("-0.0000", "0.0000")


def six_digits(value: float) -> str:
    """Format a computed value to six significant digits; an absolute value below ROUNDING becomes "0"."""
    if not math.isfinite(value):
        return "not finite"
    if abs(value) < ROUNDING:
        return "0"
    return str(round(value)) if float(value).is_integer() else f"{value:.6g}".replace("e-0", "e-")


def why_no_plot(e: Erratum) -> str:
    if e.checked == ("BIB",):
        return "Bibliographic error: no figure."
    if e.number in checks.checked():
        return "No figure, because no triplet is affected. The values above were computed for this page."
    return "Textual or typographic error: no figure and no computation."
