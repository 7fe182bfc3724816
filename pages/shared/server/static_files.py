"""The front ends of the components, served under an address that changes with their content; and how to mount one."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pages.shared.server.schema import schema

ASSETS = Path(__file__).resolve().parents[3] / "assets"
TYPES = {".js": "text/javascript", ".css": "text/css", ".bin": "application/octet-stream"}

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
        address = {"base": base(), "files": f"{base()}api/assets/{version()}/", "entry": entry}
        return dict(declared(key=key, data=data | address, **callbacks))

    return mount


def base() -> str:
    """The path the app is served under, ending in a slash."""
    return f"/{st.get_option('server.baseUrlPath') or ''}/".replace("//", "/")


def fallback(ask: Any, answer: Callable[[dict[str, Any]], bytes]) -> dict[str, Any] | None:
    """Where no socket opens a component asks through its own state; the answer travels in its data."""
    if not isinstance(ask, dict):
        return None
    return {"id": ask.get("id", 0), "bytes": base64.b64encode(answer(ask)).decode()}


@cache
def files() -> dict[str, tuple[bytes, str]]:
    """Every file of every component by its path under assets/: content and media type."""
    found = {
        p.relative_to(ASSETS).as_posix(): (p.read_bytes(), TYPES[p.suffix])
        for p in sorted(ASSETS.rglob("*"))
        if p.suffix in TYPES
    }
    return found | _typesetter() | {"shared/schema.json": (schema().encode(), "application/json")}


def _typesetter() -> dict[str, tuple[bytes, str]]:
    """KaTeX as Streamlit ships it, for formulas like those of st.latex: its manifest knows under which names of today.

    Only the plugin of Streamlit's Markdown fits the style sheet: a second KaTeX lies there, of another version.
    """
    package = Path(st.__file__).parent / "static"
    made = json.loads((package / "manifest.json").read_text())
    module = next(entry["file"] for source, entry in made.items() if source.endswith("/rehype-katex/index.js"))
    (sheet,) = made["index.html"]["css"]
    root = "../../../.."  # from api/assets/VERSION/shared/ up to the path the app is served under
    return {
        "shared/katex.js": (f'export {{ default }} from "{root}/{module}";\n'.encode(), TYPES[".js"]),
        "shared/katex.css": (f'@import "{root}/{sheet}";\n@import "formulas.css";\n'.encode(), TYPES[".css"]),
    }


@cache
def version() -> str:
    """Digest of all files: part of their address, so that browsers may keep them for ever."""
    digest = hashlib.sha256()
    for name, (content, _) in sorted(files().items()):
        digest.update(name.encode() + content)
    return digest.hexdigest()[:16]


def inline(name: str) -> str:
    """The script of a folder of assets that a page writes into st.html; the content policy allows it by its digest."""
    return (ASSETS / name / "inline.js").read_text()


async def _file(request: Request) -> Response:
    known = files().get(request.path_params["name"])
    if known is None or request.path_params["version"] != version():
        return Response(status_code=404)
    content, media = known
    return Response(content, media_type=media, headers={"Cache-Control": "public, max-age=31536000, immutable"})


ROUTES: list[BaseRoute] = [Route("/api/assets/{version}/{name:path}", _file)]
