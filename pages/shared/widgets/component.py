"""Mounting of browser components; if no WebSocket opens, the page itself answers the component's requests."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.shared.server import host, static_files
from pages.shared.state.page_state import PageState
from pages.shared.widgets.presentation import Presentation

if TYPE_CHECKING:
    from pages.shared.timeline.service import Timeline

# URL parameters that concern only a presentation, see assets/shared/present/stage.js
LECTURE = {"present", "controls"}
KEPT = ("hide", "socket")  # URL parameters that belong to no page state
# URL parameters that links pass on to other pages; `controls` is not among them, because it concerns a single page
HANDED_ON = (*KEPT, "present")

# Streamlit sends this loader with every message to the component; the browser fetches the component's files only once,
# by URL.
_LOADER = """
const loaded = {};
const load = (data) => loaded[data.entry] ??= import(new URL(data.files + data.entry, location.href).href);
export default (component) => {
  load(component.data).then((module) => module.render(component));
  return () => load(component.data).then((module) => module.unmount(component.parentElement));
};
"""


@cache
def component(name: str) -> Callable[..., dict[str, Any]]:
    """Return a function that mounts the component in a folder of assets: "a/map" loads assets/a/map/map.js.

    The JavaScript module exports render(component) and unmount(element). Its style sheet is next to it, with the same
    base name.

    Call the returned function with key=, data= and on_<state>_change=. It adds `base` (the path under which the app is
    served), `files` (the URL of the assets) and `entry` (the module) to the data.
    """
    entry = f"{name}/{name.split('/')[-1]}.js"
    declared = st.components.v2.component(f"dml_{name.replace('/', '_')}", js=_LOADER)

    def mount(*, key: str, data: dict[str, Any], **callbacks: Any) -> dict[str, Any]:
        address = {
            "base": host.base(),
            "files": f"{host.base()}api/assets/{static_files.version()}/",
            "entry": entry,
        }
        return dict(declared(key=key, data=data | address, **callbacks))

    return mount


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
