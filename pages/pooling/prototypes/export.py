"""HTTP routes of the Prototypes page: the sheet with all images, and the export of the arrays."""

from __future__ import annotations

import io

import anyio.to_thread
import numpy as np
from PIL import Image
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pages.pooling.prototypes.service import COLUMNS, TURNS, PrototypesReading, features
from pages.pooling.prototypes.state import PrototypesView
from pages.shared.server.exports import Query, Refused, export_route
from pages.shared.words import sentences as words


def sheet(source: str, asked: str | None = None) -> bytes:
    """Return a PNG with all images of a source in rows of COLUMNS; every class has equally many rows.

    Args:
        source: Name of the source of local features.
        asked: Version in the URL, which browsers use to cache the image; None for the current version.

    Raises:
        ValueError: If `asked` is not the current version of the source.
    """
    local, version = features(source)
    if asked not in (None, version):
        raise ValueError(f"this version is not available: {asked}")
    side, room = local.images.shape[1], -(-(int(local.ranks.max()) + 1) // COLUMNS) * COLUMNS
    places = np.searchsorted(np.unique(local.labels), local.labels)
    cells = np.zeros(((int(places.max()) + 1) * room, side, side, 3), np.uint8)
    cells[places * room + local.ranks] = local.images
    whole = cells.reshape(-1, COLUMNS, side, side, 3).swapaxes(1, 2).reshape(-1, COLUMNS * side, 3)
    file = io.BytesIO()
    Image.fromarray(whole).save(file, "PNG")
    return file.getvalue()


def export(query: Query, format: str, dark: bool) -> tuple[bytes, str]:
    """Return an npz file with features, prototypes, histograms, pooled vectors and error bounds, and the file name."""
    try:
        reading = PrototypesReading(PrototypesView.from_query(query))
    except (RuntimeError, ValueError, OSError) as error:
        raise Refused(words.plain(error)) from error
    r, file = reading.reading, io.BytesIO()
    names = ("features", "weights", "prototypes", "patches", "assignment", "histograms", "pooled", "combination")
    arrays = {k: getattr(r, k) for k in (*names, "error", "mean_distance", "radius")}
    np.savez_compressed(
        file, scale=r.scale, labels=reading.labels, indices=reading.local.indices[reading.rows], **arrays
    )
    return file.getvalue(), "prototypes.npz"


async def _sheet(request: Request) -> Response:
    view, asked = PrototypesView.of(dict(request.query_params)), request.query_params.get("v")
    try:
        content = await anyio.to_thread.run_sync(sheet, view.source, asked, limiter=TURNS)
    except (RuntimeError, ValueError, OSError):
        return Response(status_code=404)
    lasting = "public, max-age=31536000, immutable" if asked else "no-cache"
    return Response(content, media_type="image/png", headers={"Cache-Control": lasting})


ROUTES: list[BaseRoute] = [
    Route("/api/prototypes/pictures.png", _sheet),
    export_route("/api/prototypes/export", export, ("npz",)),
]
