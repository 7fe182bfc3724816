"""Several formulas in one row, for KaTeX, here and in the browser."""

from __future__ import annotations

import re


def statements(latex: str) -> str:
    """LaTeX of formulas with \\quad between them, that breaks into lines only there; none of them is torn apart."""
    return r"\allowbreak\quad ".join(f"{{{part}}}" for part in re.split(r"\\q?quad\b\s*", latex))
