"""JavaScript and CSS of the components, served under a URL that changes with their content."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pages.shared.server.host import STATIC
from pages.shared.server.schema import schema

ASSETS = Path(__file__).resolve().parents[3] / "assets"
SOURCES, BUILT = ASSETS / "src", ASSETS / "built"
TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".map": "application/json",
    ".txt": "text/plain",
    ".bin": "application/octet-stream",
}

FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif-Italic")  # read by assets/src/kit/figure/pdf.ts


@cache
def files() -> dict[str, tuple[bytes, str]]:
    """Return (content, media type) of every component file, by path in assets/built/ or, for data, assets/src/."""
    contents = {
        p.relative_to(folder).as_posix(): (p.read_bytes(), TYPES[p.suffix])
        for folder, names in ((BUILT, "*"), (SOURCES, "*.bin"))
        for p in sorted(folder.rglob(names))
        if p.suffix in TYPES
    }
    return contents | _fonts() | _typesetter() | {"kit/schema.json": (schema().encode(), "application/json")}


def _fonts() -> dict[str, tuple[bytes, str]]:
    """Return the fonts that exported PDF files embed, from matplotlib, which is not imported for it."""
    spec = find_spec("matplotlib")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "mpl-data" / "fonts" / "ttf"
    return {f"kit/fonts/{name}.ttf": ((folder / f"{name}.ttf").read_bytes(), "font/ttf") for name in FONTS}


def _typesetter() -> dict[str, tuple[bytes, str]]:
    """Return a JavaScript module and a style sheet that import KaTeX from Streamlit, where st.latex uses it.

    Streamlit's manifest maps modules to hashed file names. Streamlit bundles two versions of KaTeX; only the one that
    its Markdown plugin uses matches the style sheet.
    """
    made = json.loads((STATIC / "manifest.json").read_text())
    module = next(entry["file"] for source, entry in made.items() if source.endswith("/rehype-katex/index.js"))
    (sheet,) = made["index.html"]["css"]
    root = "../../../.."  # path from api/assets/VERSION/kit/ to the base path of the app
    return {
        "kit/katex.js": (f'export {{ default }} from "{root}/{module}";\n'.encode(), TYPES[".js"]),
        "kit/katex.css": (f'@import "{root}/{sheet}";\n@import "formulas.css";\n'.encode(), TYPES[".css"]),
    }


@cache
def version() -> str:
    """Return a digest of all component files, used in their URLs so that browsers may cache the files forever."""
    digest = hashlib.sha256()
    for name, (content, _) in sorted(files().items()):
        digest.update(name.encode() + content)
    return digest.hexdigest()[:16]


def inline(name: str) -> str:
    """Return assets/built/NAME/inline.js for st.html; the Content-Security-Policy allows the script by its digest."""
    return (BUILT / name / "inline.js").read_text()


async def _file(request: Request) -> Response:
    known = files().get(request.path_params["name"])
    if known is None or request.path_params["version"] != version():
        return Response(status_code=404)
    content, media = known
    return Response(content, media_type=media, headers={"Cache-Control": "public, max-age=31536000, immutable"})


ROUTES: list[BaseRoute] = [Route("/api/assets/{version}/{name:path}", _file)]
