"""The canvas of the map page: points by class, a picture under the pointer, clicks that come back to Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

ASSETS = Path(__file__).resolve().parents[2] / "assets" / "class_map"

_canvas = st.components.v2.component(
    "dml_class_map", js=(ASSETS / "class_map.js").read_text(), css=(ASSETS / "class_map.css").read_text()
)


def show(
    figure: dict[str, Any],
    *,
    key: str,
    pictures: str,
    highlight: list[int],
    mark: int | None,
    on_toggle: Callable[[], None],
) -> int | None:
    """Draw dmlcore.figures.maps.class_map; return the sample whose point was clicked just now.

    pictures + index is the address of a picture; the classes `highlight` stand out, none means all; `mark` is a sample
    to ring. on_toggle is called when a class is clicked, whose label then is st.session_state[key]["toggle"].
    """
    data = figure | {"pictures": pictures, "highlight": highlight, "mark": mark}
    clicked = _canvas(key=key, data=data, on_toggle_change=on_toggle, on_open_change=lambda: None).get("open")
    return clicked if isinstance(clicked, int) else None
