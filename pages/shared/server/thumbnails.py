"""Small images of samples over HTTP: /api/thumb/RUN/INDEX. INDEX is the index of a sample in the run's data set.

?large=1 returns the larger image for full-screen display.
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections.abc import Callable
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dmlcore.data import DataError, Dataset
from dmlcore.inspection.images import drawer, fit_into
from dmlcore.spec import DataSpec, RunSpec
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.training.build import load_data
from dmlcore.typing import Pixels
from pages.shared.server import host

# settings that determine the samples of a data set and their order
SAMPLES = {
    *("name", "root", "split", "validation", "image_size", "damaged"),
    *("folds", "fold", "fold_order", "fold_seed"),
}
SIDE, LARGE = 128, 640  # maximum side length in pixels of normal and large thumbnails
_INDEX = re.compile(r"[0-9]{1,9}")
_loading = threading.Lock()  # a page requests dozens of images at once; only one thread may read the data set


def address(run: Run) -> str:
    """Return the URL prefix of a run's thumbnails, to which the index of a sample in the data set is appended."""
    return f"{host.base()}api/thumb/{run.id}/"


def dataset(spec: RunSpec) -> Dataset:
    """Return the data set of a spec, cached for all visitors. Raises DataError."""
    with _loading:
        return _dataset(samples_key(spec))


def readable(spec: RunSpec) -> bool:
    """Return True if the data set of a spec can be read."""
    try:
        dataset(spec)
    except DataError:
        return False
    return True


def thumbnail(spec: RunSpec, index: int, *, large: bool = False) -> tuple[bytes, str]:
    """Return (content, media type) of the image of sample `index`. Raises IndexError, DataError."""
    if not 0 <= index < len(dataset(spec).labels):
        raise IndexError(index)
    return _drawn(samples_key(spec), index, LARGE) if large else _encoded(samples_key(spec), index)


def respond(request: Request) -> Response:
    """Return one thumbnail; 404 if the run or the sample does not exist."""
    index = request.path_params["index"]
    if not _INDEX.fullmatch(index):
        return Response(status_code=404)
    try:
        spec = RunStore().open(request.path_params["run"]).spec
        content, media = thumbnail(spec, int(index), large=request.query_params.get("large") == "1")
    except (RunError, DataError, IndexError):
        return Response(status_code=404)
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    # One day, not forever: the URL stays the same if the files of the data set change.
    headers = {"ETag": tag, "Cache-Control": "public, max-age=86400", "X-Content-Type-Options": "nosniff"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media, headers=headers)


ROUTES: list[BaseRoute] = [Route("/api/thumb/{run}/{index}", respond)]


def samples_key(spec: RunSpec) -> str:
    """Return the spec's seed and data set as JSON; specs with equal keys have the same samples in the same order."""
    return RunSpec(seed=spec.seed, data=DataSpec(**spec.data.model_dump(include=SAMPLES))).to_json()


@lru_cache(maxsize=3)
def _dataset(key: str) -> Dataset:
    return load_data(RunSpec.from_json(key))


@lru_cache(maxsize=3)
def _drawer(key: str) -> Callable[[int], Pixels]:
    return drawer(_dataset(key))


@lru_cache(maxsize=4096)  # about 5 kB each
def _encoded(key: str, index: int) -> tuple[bytes, str]:
    return _drawn(key, index, SIDE)


def _drawn(key: str, index: int, side: int) -> tuple[bytes, str]:
    # the first call must go through `dataset`, whose lock lets only one thread read the data set
    dataset(RunSpec.from_json(key))
    pixels = _drawer(key)(index)
    photograph, image = max(pixels.shape[:2]) > SIDE, fit_into(pixels, side)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=88) if photograph else image.save(file, "PNG")
    return file.getvalue(), "image/jpeg" if photograph else "image/png"
