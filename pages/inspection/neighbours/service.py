"""Pooling weights as overlays for image tiles, at /api/weights/RUN/TAG/INDEX. The overlay darkens low weights."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import anyio.to_thread
import numpy as np
from PIL import Image
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dmlcore.data import DataError
from dmlcore.data.files.image_store import short_side
from dmlcore.inspection.local import weight_maps
from dmlcore.spec.sections import WITHOUT_BACKBONE
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.typing import Singles
from pages.shared.server import thumbnails

DARKEST, OUTSIDE = 0.8, 0.9  # opacity of the black overlay for zero weight, and outside the network's input
QUANTILE = 0.99  # quantile of all weights that is shown at full brightness


@dataclass(frozen=True, eq=False)
class Maps:
    """Weight maps (n, h, w) of a run.

    Attributes:
        row: Row in `weights` by data set index.
        full: Weight that is shown at full brightness.
        tag: Version in the URLs; it changes whenever the weights are recomputed.
    """

    weights: Singles
    row: dict[int, int]
    full: float
    tag: str


def may_weigh(run: Run) -> bool:
    """Return True if the pooling of a run can weight positions differently."""
    return run.spec.model.name not in WITHOUT_BACKBONE and run.spec.pooling.name != "gap"


def maps_of(run: Run) -> Maps | None:
    """Return the weight maps of a run, or None if they are not computed yet. Raises RunError, OSError."""
    path = weight_maps.path_of(run)
    return None if path is None else _maps(path, path.stat().st_mtime_ns)


def addresses(run: Run, maps: Maps) -> Callable[[int], str]:
    """Return a function that maps a data set index to the URL of its weight map, or to "" if it has none."""
    base = thumbnails.address(run).replace("/api/thumb/", "/api/weights/")
    return lambda index: f"{base}{maps.tag}/{index}" if index in maps.row else ""


def image(run: Run, index: int, tag: str) -> bytes:
    """Return the overlay of one sample as a PNG that matches its thumbnail. Raises RunError, DataError, KeyError.

    Args:
        tag: Version in the URL. Browsers cache the image for a year, so every tag except the current one raises
            KeyError.
    """
    maps = maps_of(run)
    if maps is None:
        raise RunError(f"{run.id} has no weight maps")
    if tag != maps.tag:
        raise KeyError(tag)
    weights = maps.weights[maps.row[index]]
    content, _ = thumbnails.thumbnail(run.spec, index)
    with Image.open(io.BytesIO(content)) as shown:
        size = shown.size
    inputs = thumbnails.dataset(run.spec).inputs
    side = inputs.shape[-1]
    seen = side / short_side(side) if hasattr(inputs, "uncut") else 1.0  # the network sees only the centre crop
    frame = thumbnails.SIDE
    cut = round(seen * min(size) * frame / max(size))
    alpha = np.full((frame, frame), OUTSIDE)
    width, height = (round(x * frame / max(size)) for x in size)
    left, top = (frame - width) // 2, (frame - height) // 2
    beside = np.ones((frame, frame), bool)
    beside[top : top + height, left : left + width] = False
    alpha[beside] = 0.0
    rows, columns = (np.arange(cut) * n // cut for n in weights.shape)
    light = np.minimum(1.0, weights / maps.full)[rows][:, columns]
    at = (frame - cut) // 2
    alpha[at : at + cut, at : at + cut] = DARKEST * (1 - light)
    pixels = np.zeros((frame, frame, 2), np.uint8)
    pixels[..., 1] = np.rint(alpha * 255)
    file = io.BytesIO()
    Image.fromarray(pixels, "LA").save(file, "PNG")
    return file.getvalue()


async def respond(request: Request) -> Response:
    """Respond with the overlay of one sample; 404 if it has none."""
    return await anyio.to_thread.run_sync(_respond, request)


def _respond(request: Request) -> Response:
    index = request.path_params["index"]
    if not (index.isascii() and index.isdigit() and len(index) < 10):
        return Response(status_code=404)
    try:
        content = image(RunStore().open(request.path_params["run"]), int(index), request.path_params["tag"])
    except (RunError, DataError, OSError, KeyError, IndexError):
        return Response(status_code=404)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(content, media_type="image/png", headers=headers)


ROUTES: list[BaseRoute] = [Route("/api/weights/{run}/{tag}/{index}", respond)]


@lru_cache(maxsize=6)
def _maps(path: Path, changed: int) -> Maps:
    maps = weight_maps.read(path)
    full = float(np.quantile(maps.weights, QUANTILE)) if maps.weights.size else 0.0
    row = {int(index): row for row, index in enumerate(maps.indices)}
    return Maps(maps.weights, row, full or 1.0, f"{path.stem[:12]}-{changed:x}")
