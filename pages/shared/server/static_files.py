"""Front ends of the components, served under an address that changes with their content."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pages.shared.server.host import STATIC
from pages.shared.server.schema import schema

ASSETS = Path(__file__).resolve().parents[3] / "assets"
TYPES = {".json": "application/json", ".js": "text/javascript", ".css": "text/css", ".bin": "application/octet-stream"}


@cache
def files() -> dict[str, tuple[bytes, str]]:
    """Return content and media type of every component file, by its path under assets/."""
    contents = {
        p.relative_to(ASSETS).as_posix(): (p.read_bytes(), TYPES[p.suffix])
        for p in sorted(ASSETS.rglob("*"))
        if p.suffix in TYPES
    }
    return contents | _typesetter() | {"shared/schema.json": (schema().encode(), "application/json")}


def _typesetter() -> dict[str, tuple[bytes, str]]:
    """Return KaTeX as bundled with Streamlit, so that formulas look like those of st.latex.

    Streamlit's manifest maps modules to their hashed file names. Only the plugin of Streamlit's Markdown matches the
    style sheet; Streamlit also bundles a second KaTeX of another version.
    """
    made = json.loads((STATIC / "manifest.json").read_text())
    module = next(entry["file"] for source, entry in made.items() if source.endswith("/rehype-katex/index.js"))
    (sheet,) = made["index.html"]["css"]
    root = "../../../.."  # relative path from api/assets/VERSION/shared/ to the base path of the app
    return {
        "shared/katex.js": (f'export {{ default }} from "{root}/{module}";\n'.encode(), TYPES[".js"]),
        "shared/katex.css": (f'@import "{root}/{sheet}";\n@import "formulas.css";\n'.encode(), TYPES[".css"]),
    }


@cache
def version() -> str:
    """Return a digest of all files. It is part of their address, so that browsers may cache them forever."""
    digest = hashlib.sha256()
    for name, (content, _) in sorted(files().items()):
        digest.update(name.encode() + content)
    return digest.hexdigest()[:16]


def inline(name: str) -> str:
    """Return the inline script of a folder of assets, for st.html; the content policy allows it by its digest."""
    return (ASSETS / name / "inline.js").read_text()


async def _file(request: Request) -> Response:
    known = files().get(request.path_params["name"])
    if known is None or request.path_params["version"] != version():
        return Response(status_code=404)
    content, media = known
    return Response(content, media_type=media, headers={"Cache-Control": "public, max-age=31536000, immutable"})


ROUTES: list[BaseRoute] = [Route("/api/assets/{version}/{name:path}", _file)]
