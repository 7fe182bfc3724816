"""Vega-Lite chart of dmlcore.figures on a page."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import streamlit as st

from dmlcore.figures.vega_lite import Spec

# Altair fails if another thread is still importing pandas and some of its attributes are missing. Importing pandas
# here, before anything is drawn, waits for an import in another thread to finish.
import_module("pandas")


def chart(key: str, drawn: tuple[Spec, Any], alt: str, **options: Any) -> Any:
    """Show a Vega-Lite chart at the full width of its container.

    `drawn` is the specification and its columns or rows; `alt` is the alternative text.
    """
    spec, columns = drawn
    return st.vega_lite_chart(columns, spec, key=key, alt=alt, **({"width": "stretch"} | options))
