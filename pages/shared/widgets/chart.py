"""Display of the Vega-Lite charts of dmlcore.figures on a page."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore.figures.vega_lite import Spec


def chart(key: str, drawn: tuple[Spec, Any], alt: str, **options: Any) -> Any:
    """Show a Vega-Lite chart at the full width of its container.

    `drawn` is the chart specification and its data (columns or rows); `alt` is the text alternative.
    """
    spec, columns = drawn
    return st.vega_lite_chart(columns, spec, key=key, alt=alt, **({"width": "stretch"} | options))
