"""WebSocket service of the Toy training page.

Arrays of a response with K frames: steps (K,) int32. For side i: frames_i (K, n, D) int16, to be multiplied by scale_i
(K,) float32; curve_i float32, one row per step have+1..ready with 7 columns: loss, active share, non-zero share, MAP@R,
R@1, mean loss and mean active share of the last batches, NaN where not measured. The first response (have < 0) also
holds labels (n,) uint8, indices (n,) int32 and inputs (n, 3) float32.

If the data are images, embeddings with more than three dimensions are sent as two principal components. Each frame of
side i then also has neighbours_i (K, q, 5) uint16, the rows of the nearest shown samples of each query, and weights_i
(K, q, h w) uint8, the pooling weights in the query's image. The first response also holds sheet (bytes,) uint8, a JPEG
of all images. Until the feature maps are computed, a response holds only "preparing".
"""

from __future__ import annotations

import logging
import threading
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.routing import BaseRoute

from dmlcore.replay import toy_runs
from dmlcore.replay.recorded_training import AVERAGE, LiveTraining, TrainingFrame
from dmlcore.typing import Array, Pixels, Singles
from pages.losses.toy_training import state as toys_state
from pages.losses.toy_training.state import MOST_STEPS, Toy
from pages.shared.state import spec_link
from pages.shared.timeline.history_cache import HistoryCache
from pages.shared.timeline.service import Answer, FrameRequest, Timeline

CURVES = ("loss", "active", "nonzero", "map_at_r", "recall")
PREPARED_ONCE = "Preparing the images: their feature maps are computed once, which takes some seconds."
log = logging.getLogger(__name__)


class _Preparing:
    """Background threads that compute the feature maps of image data sets, because this takes seconds."""

    def __init__(self) -> None:
        self._threads: dict[tuple[str, int], threading.Thread] = {}
        self._failed: dict[tuple[str, int], str] = {}
        self._guard = threading.Lock()

    def obstacle(self, toy: Toy) -> dict[str, Any]:
        """Return {} if a state can be trained, else {"preparing": message, "failed": True or False}.

        "failed" is True if the feature maps could not be computed.
        """
        key = (toy.data, toy.seed)
        if not toy.images:
            return {}
        with self._guard:
            if key not in self._threads:
                self._threads[key] = threading.Thread(target=self._make, args=key, daemon=True)
                self._threads[key].start()
            thread = self._threads[key]
        thread.join(TIMELINE.patience)
        if thread.is_alive():
            return {"preparing": PREPARED_ONCE, "failed": False}
        with self._guard:
            if why := self._failed.pop(key, ""):
                del self._threads[key]  # the next request makes another attempt
        return {"preparing": why, "failed": True} if why else {}

    def _make(self, name: str, seed: int) -> None:
        try:
            toy_runs.prepare_data(name, seed)
        except Exception as error:
            log.exception("images cannot be prepared")
            self._failed[name, seed] = f"These images cannot be used: {error}"


PREPARING = _Preparing()


def contents(asked: FrameRequest[Toy, LiveTraining]) -> Answer:
    """Return header and arrays of the requested frames and curves; the first response also describes the data."""
    toy, have, ready = asked.state, asked.have, asked.ready
    first = asked.histories[0]
    header: dict[str, Any] = {"per_epoch": first.steps_per_epoch}
    arrays: dict[str, Array] = {"steps": np.array(asked.steps, dtype=np.int32)}
    for i, (training, shown) in enumerate(zip(asked.histories, asked.frames, strict=True)):
        points = [frame.embeddings if frame.plane is None else frame.plane for frame in shown]
        frames, scale = quantised(points, (len(first.watched), toy.shown_dim))
        if toy.images and shown:
            arrays |= _asked(i, shown, toy_runs.queries(training))
        arrays |= {f"frames_{i}": frames, f"scale_{i}": scale, f"curve_{i}": _curves(training, have, ready)}
    if have < 0:
        more, drawn = _data(toy, first)
        header, arrays = header | more, arrays | drawn
    return header, arrays


def quantised(frames: list[Singles], shape: tuple[int, int]) -> tuple[NDArray[np.int16], Singles]:
    """Quantise embeddings (K, n, D) to int16 with one scale per frame (K,).

    The error is at most 1/65534 of a frame's largest absolute coordinate.
    """
    if not frames:
        return np.empty((0, *shape), np.int16), np.empty(0, np.float32)
    values = np.stack(frames).astype(np.float64)
    scale = np.maximum(np.abs(values).max((1, 2)), 1e-12) / 32767
    return np.rint(values / scale[:, None, None]).astype(np.int16), scale.astype(np.float32)


def _curves(training: LiveTraining, have: int, ready: int) -> Singles:
    since = max(have + 1 - toy_runs.RECENT, 0)
    curves = training.curves(since)
    means = [toy_runs.recent_mean(curves[name]) for name in ("loss", "active")]
    rows = np.stack([*(curves[name] for name in CURVES), *means], 1)
    return rows[have + 1 - since : max(ready, have) + 1 - since].astype(np.float32)


def _data(toy: Toy, training: LiveTraining) -> tuple[dict[str, Any], dict[str, Array]]:
    dataset, watched = training.dataset, training.watched
    space = toy_runs.input_space(dataset, watched)
    labels = dataset.labels[watched]
    classes = np.unique(labels)
    scores = training.scored(toy_runs.comparison_vectors(dataset, watched))
    header = {
        "baseline": {"map_at_r": scores.map_at_r, "recall": scores.recall_at[1]},
        "classes": [dataset.class_names[k] for k in classes],
        "axes": space.axes,
        "dim": toy.shown_dim,
        "note": space.note,
        "samples": len(dataset.splits[toy.split]),
        "notes": list(dataset.notes),
    }
    arrays: dict[str, Array] = {
        "labels": np.searchsorted(classes, labels).astype(np.uint8),
        "indices": watched.astype(np.int32),
        "inputs": space.points,
    }
    if toy.images:
        sheet, columns = _sheet(toy.data, toy.seed, tuple(watched.tolist()))
        header |= {"queries": toy_runs.queries(training), "columns": columns, "side": toy_runs.SHOWN}
        arrays["sheet"] = sheet
    return header, arrays


@lru_cache(maxsize=8)
def _sheet(name: str, seed: int, indices: tuple[int, ...]) -> tuple[Pixels, int]:
    return toy_runs.contact_sheet(toy_runs.dataset(name, seed), np.array(indices))


def _asked(side: int, frames: list[TrainingFrame], asked: list[int]) -> dict[str, Array]:
    """Return the nearest neighbours of the queries in each frame, and the pooling weights in the queries' images.

    Args:
        side: Index of the side.
        frames: Frames to send.
        asked: Indices of the queries among the samples of a frame.
    """
    neighbours = {f"neighbours_{side}": np.stack([toy_runs.neighbours(frame.embeddings, asked) for frame in frames])}
    # Early frames have no weights: until its prototypes are initialised, a pooling with prototypes is plain averaging.
    known = next((frame.weights for frame in frames if frame.weights is not None), None)
    if known is not None:
        even = np.full(known.shape, AVERAGE, np.uint8)
        maps = [even if frame.weights is None else frame.weights for frame in frames]
        neighbours[f"weights_{side}"] = np.stack([each[asked] for each in maps])
    return neighbours


def rested(toy: Toy, step: int) -> dict[str, Any]:
    """Return the URL query string of the page and, for each side, the spec of a run with the settings at `step`.

    Each spec is returned as TOML, as a command and as a link.
    """
    runs = [toy.run(i, step, max(step, 1)) for i in range(len(toy.sides))]
    return {
        "query": toy.to_query(),
        "toml": [run.to_toml() for run in runs],
        "command": [spec_link.command(run) or "python -m dmlcore train spec.toml" for run in runs],
        "links": [spec_link.link(run) for run in runs],
        "show": step,
    }


TIMELINE: Timeline[Toy, LiveTraining] = Timeline(
    "/api/toys",
    state_of=Toy.of,
    specs=lambda toy: {toys_state.LETTERS[i].upper(): toy.live(i) for i in range(len(toy.sides))},
    kept=HistoryCache(lambda spec: LiveTraining(spec, toy_runs.prepare_data(spec.run.data.name, spec.run.seed))),
    contents=contents,
    rested=rested,
    most_steps=MOST_STEPS,
    patience=0.05,
    most_frames=60,
    prepare=lambda toy: PREPARING.obstacle(toy),
)
ROUTES: list[BaseRoute] = [TIMELINE.route]
