"""A drawing of dmlcore.figures on a page."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore.figures.vega_lite import Spec


def chart(key: str, drawn: tuple[Spec, Any], alt: str, **options: Any) -> Any:
    """Show a specification with its columns or rows, as wide as there is room; alt: what it shows, in words."""
    spec, columns = drawn
    return st.vega_lite_chart(columns, spec, key=key, alt=alt, **({"width": "stretch"} | options))
