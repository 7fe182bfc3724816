"""LaTeX of several formulas in one line, for KaTeX in Streamlit and in the browser."""

from __future__ import annotations

import re


def statements(latex: str) -> str:
    r"""Allow line breaks in LaTeX only between formulas (at \quad), never inside one."""
    return r"\allowbreak\quad ".join(f"{{{part}}}" for part in re.split(r"\\q?quad\b\s*", latex))
