"""How a page mounts its front end; where that opens no socket, its questions are answered by the page itself."""

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

LECTURE = {"present", "controls"}  # of an address: assets/shared/present/stage.js
KEPT = ("hide", "socket")  # of an address: no part of any state
HANDED_ON = (*KEPT, "present")  # by links between pages; the controls of a lecture are those of one page

# A few lines go with every message; the component's files themselves are fetched once, by address.
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
    """Declare the component of a folder of assets: "a/map" is assets/a/map/map.js.

    The module exports render(component) and unmount(element); its style sheet lies beside it, under the same name.

    Call the result with key=, data= and on_<state>_change=. To data are added `base` (the path the app is served
    under), `files` (where the assets lie) and `entry`.
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
    """Show the state of a page by a component that asks a socket; `answer` is what answers there, if none opens.

    Its data are the state, under `name`, its link `query`, `menus` (what choices are called), `hide` (parts that the
    page or its address leaves out), `idle` (the address asks for nothing), `socket`, `kept` (what of an address is no
    part of the state), `present` (what it shows a lecture) and the options, which come last. writes: the state keys
    that the component writes; heard: those of which the page wants to be told, with what is then called.
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
    """`mount` for a page that plays what its timeline answers, from the step of the address on."""
    step = timeline.step(st.query_params.to_dict())
    mount(folder, state, timeline.answer, key=key, query=state.to_query(), step=step, **options)


def fallback(ask: Any, answer: Callable[[dict[str, Any]], bytes]) -> dict[str, Any] | None:
    """Where no socket opens a component asks through its own state; the answer travels in its data."""
    if not isinstance(ask, dict):
        return None
    return {"id": ask.get("id", 0), "bytes": base64.b64encode(answer(ask)).decode()}


def _nothing() -> None:
    """Streamlit drops writes to state keys without a callback."""
