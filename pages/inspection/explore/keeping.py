"""Tags and saved views of a run: data for the map component, and the handler of the component's change requests."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np
import streamlit as st

from dmlcore.inspection import tags_and_views
from dmlcore.inspection.tags_and_views import NotKept, TagsAndViews
from dmlcore.storage.runs import Run
from dmlcore.typing import Ints
from pages.inspection.explore.state import Look

LOOK = tuple(kind.key or name for name, kind in Look.kinds.items())  # name in the link
VIEWED = (*LOOK, "selection", "map", "training", "point", "query", "own")  # URL parameters that a saved view stores
# session-state keys: number of opened views, and True if the last one needs another map
_TIMES, _AGAIN = "views opened", "another map was requested"


def kept(run: Run) -> dict[str, Any]:
    """Return the tags and saved views of a run in the form that the map component expects.

    "tags" identifies the current version of the tags, "views" holds the saved views, "closed" says why nothing can be
    stored ("" if storing is possible), and "opened" counts how often a view was opened in this session.
    """
    try:
        known, why = tags_and_views.read(run), tags_and_views.read_only_reason(run)
    except NotKept as error:
        known, why = TagsAndViews(), str(error)
    views = [{"name": name, "query": query} for name, query in known.views.items()]
    return {"tags": known.id, "views": views, "closed": why, "opened": st.session_state.get(_TIMES, 0)}


def keep(run: Run, indices: Ints, asked: Any) -> None:
    """Execute a request of the map component: tag samples, or save, delete or open a view.

    If the request is refused, the reason appears as a toast.

    Args:
        indices: Data set indices of the points of the map, shape (n,).
    """
    if not isinstance(asked, dict):
        return
    try:
        if "tag" in asked:
            tags_and_views.tag(run, asked["tag"], tagged(asked, indices), on=asked.get("on") is not False)
        elif "view" in asked:
            before = {k: v for k, v in st.query_params.to_dict().items() if k in VIEWED and k not in LOOK}
            look = Look.of(asked.get("look")).to_query()
            tags_and_views.keep_view(run, asked["view"], urlencode(before | look, safe=",:"))
        elif "drop" in asked:
            tags_and_views.drop_view(run, asked["drop"])
        elif "open" in asked:
            _open(tags_and_views.read(run).views.get(asked["open"], ""))
    except NotKept as error:
        st.toast(str(error), icon=":material/error:")


def tagged(asked: dict[str, Any], indices: Ints) -> Ints:
    """Return the data set indices of the samples to tag: one sample, or the bits of a base64 mask. Raises NotKept."""
    if "index" in asked:
        if not isinstance(asked["index"], int) or asked["index"] not in indices:
            raise NotKept("This sample is not on the map.")
        return np.array([asked["index"]])
    size = -(-len(indices) // 8)
    try:
        bits = np.frombuffer(base64.b64decode(asked["bits"][: 4 * size], validate=True), np.uint8)
    except (KeyError, TypeError, ValueError):
        raise NotKept("There are no samples to tag.") from None
    if len(bits) != size:
        raise NotKept("The samples to tag are not on this map.")
    chosen: Ints = indices[np.unpackbits(bits, count=len(indices), bitorder="little").astype(bool)]
    return chosen


def other_map() -> bool:
    """Return True if the view that was just opened belongs to another map; later calls return False."""
    return bool(st.session_state.pop(_AGAIN, False))


def _open(query: str) -> None:
    before = {name: st.query_params.get(name) for name in ("map", "training")}
    for name in VIEWED:
        st.query_params.pop(name, None)
    st.query_params.update(_viewed(dict(parse_qsl(query))))
    st.session_state[_TIMES] = st.session_state.get(_TIMES, 0) + 1
    st.session_state[_AGAIN] = any(st.query_params.get(name) != value for name, value in before.items())


def _viewed(query: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if name in VIEWED}
