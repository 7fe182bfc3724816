"""Toy trainings over a WebSocket: a state comes in, the steps the browser lacks go out; trained and kept in Python.

A request is {"id", "toy", "have", "want", "stride", "frames", "rest"}: the page knows the curves of steps 0..have,
wants them up to `want`, the frames of every stride-th new step, and of the steps listed. It says everything, so that a
socket has no state of its own. Trainings are kept by spec, bounded in bytes, and shared; another setting at step 40
shares the steps before it.

Arrays: steps (K,) int32; for side i frames_i (K, n, D) int16 times scale_i (K,) float32, and curve_i float32
(have+1..ready, 7): loss, active share, non-zero share, MAP@R, R@1, mean loss and mean active share of the last batches,
NaN where there is none. A page without anything (have < 0) also gets labels (n,) uint8, indices (n,) int32 and inputs
(n, 3) float32.

Of pictures embeddings beyond three dimensions go out as two principal components; for each frame also, for side i,
neighbours_i (K, q, 5) uint16, rows of the watched samples next to each query, and weights_i (K, q, h w) uint8, where
the pooling looks in the query's picture. A page without anything gets sheet (bytes,) uint8 too, a JPEG of all pictures.
Until the feature maps of a set are there, an answer says "preparing" and nothing else.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.routing import BaseRoute

from dmlcore.replay import toy_runs
from dmlcore.replay.recorded_training import AVERAGE, LiveSpec, LiveTraining, TrainingFrame
from dmlcore.training.build import StepError
from dmlcore.typing import Array, Pixels, Singles
from pages.losses.toys import state as toys_state
from pages.losses.toys.state import MOST_STEPS, Toy
from pages.shared.server import history_cache
from pages.shared.server.websocket import pack, socket_route
from pages.shared.state import spec_link
from pages.shared.state.untrusted import bounded

PATIENCE = 0.05  # seconds one answer trains; what is not ready then comes with the next
MOST_FRAMES = 60  # in one answer
CURVES = ("loss", "active", "nonzero", "map_at_r", "recall")
UNUSABLE = "These pictures cannot be used"
log = logging.getLogger(__name__)


class _Trainings:
    """What is kept here: trainings by their spec."""

    def key(self, spec: LiveSpec) -> str:
        changes = [(c.step, c.overrides, c.moves) for c in spec.changes]
        return json.dumps([spec.run.to_json(), changes, spec.per_class, spec.parts])

    def fresh(self, spec: LiveSpec) -> LiveTraining:
        return LiveTraining(spec, toy_runs.prepared(spec.run.data.name, spec.run.seed))

    def fork(self, history: LiveTraining, spec: LiveSpec) -> LiveTraining:
        return history.fork(spec.changes)

    def shared(self, history: LiveTraining, spec: LiveSpec) -> int:
        return history.shared_with(spec)

    def bytes(self, history: LiveTraining) -> int:
        first = history.frames[0]
        more = [a.nbytes for a in (first.embeddings, first.plane, first.weights) if a is not None]
        return len(history.frames) * (sum(more) + 1000) + (len(history.frames) << 8) + history.inputs_bytes


class _Preparing:
    """Sets of pictures whose feature maps are made in a thread of their own, as that takes seconds."""

    def __init__(self) -> None:
        self._threads: dict[tuple[str, int], threading.Thread] = {}
        self._failed: dict[tuple[str, int], str] = {}
        self._guard = threading.Lock()

    def told(self, toy: Toy) -> str:
        """Why a state cannot be trained yet, or ""; raises nothing."""
        key = (toy.data, toy.seed)
        if not toy.pictures:
            return ""
        with self._guard:
            if key not in self._threads:
                self._threads[key] = threading.Thread(target=self._make, args=key, daemon=True)
                self._threads[key].start()
            thread = self._threads[key]
        thread.join(PATIENCE)
        if thread.is_alive():
            return "Preparing the pictures: what the frozen network makes of them is computed once, in some seconds."
        with self._guard:
            if why := self._failed.pop(key, ""):
                del self._threads[key]  # tried again when asked for again
        return why

    def _make(self, name: str, seed: int) -> None:
        try:
            toy_runs.prepared(name, seed)
        except Exception as error:
            log.exception("pictures cannot be prepared")
            self._failed[name, seed] = f"{UNUSABLE}: {error}"


class _Ahead:
    """Trains on while an answer travels and is painted, until another one is asked for."""

    def __init__(self) -> None:
        self._answers = 0
        self._thread = ThreadPoolExecutor(1, "toys")

    def halt(self) -> None:
        self._answers += 1

    def train(self, toy: Toy, want: int) -> None:
        since = self._answers
        self._thread.submit(lambda: trained(toy, want, PATIENCE, lambda: self._answers == since))


PREPARING = _Preparing()
AHEAD = _Ahead()
KEPT: history_cache.Kept[LiveSpec, LiveTraining] = history_cache.Kept(_Trainings())


def trained(
    toy: Toy, want: int, patience: float, wanted: Callable[[], bool] = lambda: True
) -> tuple[list[LiveTraining], int, str]:
    """The trainings of a state, the last step that all have made, and why one of them stopped, or "".

    They take turns, step by step, for `patience` seconds and as long as they are `wanted`.
    """
    found = [KEPT.of(toy.live(i)) for i in range(len(toy.sides))]
    began, stopped = time.monotonic(), ""
    ready = min(training.recorded for training, _ in found)
    while ready < want and time.monotonic() - began < patience and wanted():
        for letter, (training, lock) in zip(toys_state.LETTERS, found, strict=False):
            with lock:
                try:
                    training.frame(ready + 1)
                except StepError as error:
                    stopped = f"{letter.upper()} stops here: {_reason(error)}"
        if stopped:
            break
        ready += 1
    return [training for training, _ in found], min(want, ready), stopped


def _reason(error: StepError) -> str:
    return str(error).partition(". The last checkpoint")[0]


def answer(request: dict[str, Any], most: int = MOST_FRAMES) -> bytes:
    """The steps after request["have"] up to request["want"], as far as they are ready within PATIENCE.

    most: frames in it.
    """
    AHEAD.halt()
    toy = toys_state.toy_of(request.get("toy"))
    if told := PREPARING.told(toy):
        number = request.get("id") if isinstance(request.get("id"), int) else 0
        return pack({"id": number, "preparing": told, "failed": told.startswith(UNUSABLE)}, {})
    have = int(bounded(request.get("have"), -1, MOST_STEPS, -1))
    want = int(bounded(request.get("want"), 0, MOST_STEPS, 0))
    stride = int(bounded(request.get("stride"), 1, MOST_STEPS, 1))
    trainings, ready, stopped = trained(toy, want, PATIENCE)
    steps = _steps(request.get("frames"), have, ready, stride, most)
    first = trainings[0]
    header: dict[str, Any] = {
        "id": request.get("id") if isinstance(request.get("id"), int) else 0,
        "have": have,
        "ready": ready,
        "stopped": stopped,
        "per_epoch": first.steps_per_epoch,
    }
    arrays: dict[str, Array] = {"steps": np.array(steps, dtype=np.int32)}
    for i, training in enumerate(trainings):
        shown = [training.frames[k] for k in steps]
        points = [frame.embeddings if frame.plane is None else frame.plane for frame in shown]
        frames, scale = quantised(points, (len(first.watched), toy.shown_dim))
        if toy.pictures and shown:
            arrays |= _asked(i, shown, toy_runs.queries(training))
        arrays |= {f"frames_{i}": frames, f"scale_{i}": scale, f"curve_{i}": _curves(training, have, ready)}
    if have < 0:
        more, drawn = _data(toy, first)
        header, arrays = header | more, arrays | drawn
    if request.get("rest") is True:
        header |= rested(toy, int(bounded(request.get("show"), 0, MOST_STEPS, 0)))
    if ready < want and not stopped:
        AHEAD.train(toy, want)
    return pack(header, arrays)


def _steps(asked: Any, have: int, ready: int, stride: int, most: int) -> list[int]:
    """The steps whose frames are sent: every stride-th new one, and those asked for."""
    new = [k for k in range(have + 1, ready + 1) if k % stride == 0]
    named = [bounded(k, -1, MOST_STEPS, -1) for k in asked[:most]] if isinstance(asked, list) else []
    chosen = {int(k) for k in named if 0 <= k <= ready} | set(new[:most]) | ({0} if have < 0 else set())
    return sorted(chosen)


def quantised(frames: list[Singles], shape: tuple[int, int]) -> tuple[NDArray[np.int16], Singles]:
    """Embeddings (K, n, D) as int16 and the factor (K,) of each frame: off by 1/65534 of its reach at most."""
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
    scores = training.scored(toy_runs.compared(dataset, watched))
    header = {
        "baseline": {"map_at_r": scores.map_at_r, "recall": scores.recall_at[1]},
        "classes": [dataset.class_names[k] for k in classes],
        "axes": space.axes,
        "dim": toy.shown_dim,
        "note": space.note,
        "samples": len(dataset.parts[toy.part]),
        "notes": list(dataset.notes),
    }
    arrays: dict[str, Array] = {
        "labels": np.searchsorted(classes, labels).astype(np.uint8),
        "indices": watched.astype(np.int32),
        "inputs": space.points,
    }
    if toy.pictures:
        sheet, columns = _sheet(toy.data, toy.seed, tuple(watched.tolist()))
        header |= {"queries": toy_runs.queries(training), "columns": columns, "side": toy_runs.SHOWN}
        arrays["sheet"] = sheet
    return header, arrays


@lru_cache(maxsize=8)
def _sheet(name: str, seed: int, indices: tuple[int, ...]) -> tuple[Pixels, int]:
    return toy_runs.contact_sheet(toy_runs.dataset(name, seed), np.array(indices))


def _asked(side: int, frames: list[TrainingFrame], asked: list[int]) -> dict[str, Array]:
    """What the queries see in each frame: their neighbours, and where the pooling looks in them."""
    found = {f"neighbours_{side}": np.stack([toy_runs.neighbours(frame.embeddings, asked) for frame in frames])}
    # A pooling with prototypes has weights from the step on at which they are placed, and averages before.
    known = next((frame.weights for frame in frames if frame.weights is not None), None)
    if known is not None:
        even = np.full(known.shape, AVERAGE, np.uint8)
        maps = [even if frame.weights is None else frame.weights for frame in frames]
        found[f"weights_{side}"] = np.stack([each[asked] for each in maps])
    return found


def rested(toy: Toy, step: int) -> dict[str, Any]:
    """The link of a state, and each side as a run of its own with the settings in force at a step."""
    runs = [toy.run(i, step, max(step, 1)) for i in range(len(toy.sides))]
    return {
        "query": toys_state.to_query(toy),
        "toml": [run.to_toml() for run in runs],
        "command": [spec_link.command(run) or "python -m dmlcore train spec.toml" for run in runs],
        "links": [spec_link.link(run) for run in runs],
        "show": step,
    }


ROUTES: list[BaseRoute] = [socket_route("/api/toys", answer, heavy=lambda _: True, limiter=history_cache.TURNS)]
