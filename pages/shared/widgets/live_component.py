"""Components that show the state of a page; if no WebSocket opens, the page itself answers their requests."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.shared.state.page_state import PageState
from pages.shared.widgets.component import KEPT, component
from pages.shared.widgets.presentation import Presentation

if TYPE_CHECKING:
    from pages.shared.timeline.service import Timeline

# URL parameters that concern only a presentation, see assets/shared/present/stage.js
LECTURE = {"present", "controls"}


def mount(
    folder: str,
    state: PageState,
    answer: Callable[[dict[str, Any]], bytes],
    *,
    key: str,
    name: str = "state",
    present: Presentation | None = None,
    hide: Sequence[str] = (),
    writes: Sequence[str] = ("ask",),
    heard: Mapping[str, Callable[[], None]] | None = None,
    **options: Any,
) -> None:
    """Mount a component that shows the state of a page and requests data through a WebSocket.

    The component receives the page state under `name`, the `options`, and the following entries, which `options` may
    override: `query` (the state as a query string), `menus` (titles of the choices), `hide` (elements that the page or
    the URL leaves out), `idle` (True if the URL has no parameters), `socket` (False if the URL disables WebSockets),
    `kept` (names of URL parameters that belong to no page state) and `present` (the declaration for presentations).

    `answer` computes responses if no WebSocket opens; `writes` lists the keys of the component's state that the
    component writes; `heard` maps such keys to the callbacks to call when their values change.
    """
    query = st.query_params.to_dict()
    written: dict[str, Any] = st.session_state.get(key) or {}
    data = {
        name: state.to_json(),
        "query": state.link(),
        "menus": state.menus(),
        "kept": KEPT,
        "hide": [*hide, *query.get("hide", "")[:200].split(",")],
        "idle": not query.keys() - LECTURE,
        "present": present and present.to_json(),
        "socket": query.get("socket") != "off",
        "answer": fallback(written.get("ask"), answer),
    }
    calls = dict.fromkeys(writes, _nothing) | dict(heard or {})
    component(folder)(key=key, data=data | options, **{f"on_{each}_change": call for each, call in calls.items()})


def mount_timeline(folder: str, state: PageState, timeline: Timeline[Any, Any], *, key: str, **options: Any) -> None:
    """Mount the component of a page that plays a timeline, starting at the step in the URL."""
    step = timeline.step(st.query_params.to_dict())
    mount(folder, state, timeline.answer, key=key, query=state.to_query(), step=step, **options)


def fallback(ask: Any, answer: Callable[[dict[str, Any]], bytes]) -> dict[str, Any] | None:
    """Return the response to a request that the component wrote to its own state because no WebSocket opened."""
    if not isinstance(ask, dict):
        return None
    return {"id": ask.get("id", 0), "bytes": base64.b64encode(answer(ask)).decode()}


def _nothing() -> None:
    """Do nothing; used as a callback, because Streamlit drops what a component writes to keys without a callback."""
