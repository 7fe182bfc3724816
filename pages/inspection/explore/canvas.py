"""Map and image panel of the Explore page, and handlers for lasso selections, tags, saved views and URL updates."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import streamlit as st

from dmlcore.figures.maps import in_square
from dmlcore.inspection import selections
from dmlcore.inspection.selections import Selection
from pages.inspection.explore import keeping as keeping_view
from pages.inspection.explore.service import MapData
from pages.inspection.explore.state import Look, menus
from pages.shared.server import thumbnails
from pages.shared.widgets import menu, selection
from pages.shared.widgets.component import component
from pages.shared.widgets.live_component import Presentation

KEY = "map"
ORIGIN = "lasso on the map"
MOST_CORNERS = 64
MOST_AWAY = 100  # maximum absolute coordinate of the user's uploaded image, in widths of the map
PAGES = {"neighbours": "All neighbours", "failures": "Forces"}
LECTURE = Presentation(
    "Map of an embedding",
    "Test samples from classes that the network never trained on. Similar samples are close together.",
    ("time", "legend"),
    (
        "Each point is a test sample. Colour and shape show its class; the name is next to the most central sample.",
        "Zoom with the wheel: points turn into images. Click a point to see its neighbours.",
        "The distance and density of groups mean little. Use the Neighbours page to judge single neighbours.",
        "Controls, images: shows the highlighted samples as images next to the map. L draws a lasso.",
    ),
    "fill",
)
_canvas = component("inspection/explore")


def lecture(data: MapData) -> Presentation:
    """Return the texts for a lecture; those on training and on classes are left out if they are not true."""
    shown = LECTURE
    if data.run.is_embedding_set:
        shown = replace(shown, caption="Imported embeddings. Similar samples are close together.")
    if not data.has_labels or data.run.is_embedding_set:
        classes = "Colour and shape show its class; the name is next to the most central sample."
        first = (
            f"Each point is a sample. {classes if data.has_labels else 'Choose what its colour shows above the map.'}"
        )
        shown = replace(shown, notes=(first, *shown.notes[1:]))
    return shown


def show(data: MapData, *, marks: Sequence[int], chosen: Selection | None, own: Sequence[float] | None = None) -> None:
    """Mount the map; if the user clicked a link to another page, open that page.

    Args:
        marks: Data set indices of the samples to mark with a ring.
        chosen: Samples to draw as selected.
        own: Position of the user's uploaded image, as fractions of the map's square; None if there is no such image.
    """
    seq = st.session_state.get(_seq(data), 0)
    event = _canvas(
        key=KEY,
        data={
            "points": data.address,
            "images": thumbnails.address(data.run),
            "run": data.run.id,
            "title": data.title,
            "steps": list(data.steps),
            "marks": list(marks),
            "own": own,
            "selection": {"id": chosen.id} if chosen else None,
            "seq": seq,
            "look": look().to_json(),
            "menus": menus(
                labels=data.has_labels,
                gallery=data.has_gallery,
                metadata=[column.name for column in data.metadata()],
            ),
            "labelled": data.has_labels,
            "trained": not data.run.is_embedding_set,
            "present": asdict(lecture(data)),
            "links": [
                {"page": page, "label": label, "parameters": {"run": data.run.id}}
                for page, label in PAGES.items()
                if data.has_labels or page != "failures"
            ],
            **keeping_view.kept(data.run),
        },
        on_lasso_change=lambda: _choose(data),
        on_look_change=_follow_look,
        on_keep_change=lambda: keeping_view.keep(data.run, data.sheet.indices, st.session_state[KEY].get("keep")),
        on_open_change=lambda: None,
    )
    opened = event.get("open")
    if isinstance(opened, dict) and opened.get("page") in PAGES and isinstance(opened.get("index"), int):
        menu.go(opened["page"], {"run": data.run.id, "query": str(opened["index"])})


def own(data: MapData) -> list[float] | None:
    """Return the position given by ?own=X,Y (map units) as fractions of the map's square; None if it is invalid."""
    if data.steps:  # The position refers to one particular map; it is not valid on a map over training.
        return None
    try:
        place = np.array([float(number) for number in st.query_params.get("own", "")[:100].split(",")])
    except ValueError:
        return None
    if place.shape != (2,) or not np.isfinite(place).all() or np.abs(place).max() > MOST_AWAY * np.ptp(data.points):
        return None
    x, y = in_square(place[None], data.points)[0].tolist()
    return [x, y]


def look() -> Look:
    """Return the display settings (colours, filters, sizes) parsed from the URL, which is untrusted."""
    return Look.from_query(st.query_params.to_dict())


def polygon(text: Any) -> np.ndarray:
    """Decode the corners (m, 2) of a lasso from base64-encoded little-endian uint16. Raises ValueError."""
    try:
        places = np.frombuffer(base64.b64decode(text[: 8 * MOST_CORNERS], validate=True), "<u2")
    except (TypeError, ValueError) as error:  # ValueError: invalid base64, or an odd number of bytes
        raise ValueError(f"This selection could not be read: {error}.") from None
    if len(places) % 2 or not 6 <= len(places) <= 2 * MOST_CORNERS:
        raise ValueError(f"A lasso needs 3 to {MOST_CORNERS} corners, got {len(places)} coordinates.")
    return places.reshape(-1, 2)


def rows(data: MapData, asked: dict[str, Any], before: Selection | None) -> np.ndarray:
    """Return the data set indices of the samples selected after a lasso or a click.

    Args:
        asked: Message of the component: a lasso polygon, or a sample to toggle.
        before: The selection so far.

    Raises:
        ValueError: If the message is malformed.
    """
    indices = data.sheet.indices
    kept = before.indices if before else indices[:0]
    if "toggle" in asked:
        one = asked["toggle"]
        if not isinstance(one, int) or one not in indices:
            raise ValueError("This sample is not on the map.")
        return np.setxor1d(kept, [one])
    frame = asked.get("frame", 0)
    if not isinstance(frame, int) or not 0 <= frame < len(data.sheet.frames):
        raise ValueError("The map has no such frame.")
    inside = indices[data.sheet.enclosed(polygon(asked.get("polygon")), frame)]
    return np.union1d(kept, inside) if asked.get("add") else inside


def _choose(data: MapData) -> None:
    asked = st.session_state[KEY].get("lasso")
    if not isinstance(asked, dict):
        return
    st.session_state[_seq(data)] = asked.get("seq") if isinstance(asked.get("seq"), int) else 0
    try:
        chosen = rows(data, asked, selections.load(data.run, st.query_params.get(selection.PARAMETER, "")))
    except ValueError as error:
        st.toast(str(error), icon=":material/error:")
        return
    if len(chosen):
        selection.choose(data.run, chosen, ORIGIN)
    else:
        selection.forget()


def _follow_look() -> None:
    given = st.session_state[KEY].get("look")
    if not isinstance(given, dict):
        return
    for name in keeping_view.LOOK:
        st.query_params.pop(name, None)
    st.query_params.update(Look.of(given).to_query())


def _seq(data: MapData) -> str:
    return f"lassos heard of {data.run.id}"
