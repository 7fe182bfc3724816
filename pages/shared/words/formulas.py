"""Typesetting of several LaTeX formulas in one line, with KaTeX in Streamlit and in the browser."""

from __future__ import annotations

import re


def statements(latex: str) -> str:
    r"""Return LaTeX in which lines may break only between formulas (at \quad), never inside one."""
    return r"\allowbreak\quad ".join(f"{{{part}}}" for part in re.split(r"\\q?quad\b\s*", latex))
