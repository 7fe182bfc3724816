"""Components in the browser: JavaScript modules built from a folder of assets/src, loaded once by URL."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

from pages.shared.server import host, static_files

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
    """Return a function that mounts the component in a folder of assets/src: "a/map" loads assets/built/a/map/map.js.

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
