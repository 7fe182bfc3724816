"""GAP and GSP over a WebSocket: a study comes in, the steps the browser lacks go out; both trained and kept in Python.

A request is {"study", "have", "want", "rest", "id"}: the page holds steps 0..have and wants them up to `want`. It says
everything, so that a socket has no state of its own; a study that differs only later on (another mu at step 200)
shares the steps before.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dmlcore import data
from dmlcore.data import Dataset
from dmlcore.data.synthetic.tokens import SHARED_TOKENS
from dmlcore.geometry.token_use import TokenUse, mean_over_pairs
from dmlcore.models.networks import TOKEN_BOUND
from dmlcore.replay import recorded_training
from dmlcore.replay.recorded_training import LiveTraining
from dmlcore.storage.csv_text import as_csv
from dmlcore.typing import Array, Bytes, Singles
from pages.pooling.gap_or_gsp import state as spec
from pages.pooling.gap_or_gsp.state import MOST_STEPS, POOLINGS, Pooled, Study
from pages.shared.server import history_cache
from pages.shared.server.websocket import pack, socket_route
from pages.shared.state.untrusted import bounded

PATIENCE = 0.2  # seconds one answer computes; what is not ready then comes with the next
MOST_FRAMES = 60  # in one answer
FRAME_BYTES = 30_000  # of a step of both sides, what is recorded and what is sent
MEASURES = ("loss", "map_at_r", "on_shared", "intersection", "iou")
SCALE = TOKEN_BOUND / 32767  # all positions lie in the box: tokens and prototypes are clipped, the rest are means


@dataclass(frozen=True, eq=False)
class View:
    """What the page draws of one side at one step; positions are int16 in units of SCALE."""

    tokens: NDArray[np.int16]  # (T, 2)
    samples: NDArray[np.int16]  # (n, 2)
    prototypes: NDArray[np.int16]  # (m, 2), (0, 2) until they are placed
    weights: NDArray[np.uint16]  # (C, T) of 65535
    active: Bytes  # (C, T / 8) bits, packed along the tokens
    corners: NDArray[np.int16]  # (., 2) of the hulls, class by class
    sizes: Bytes  # (C,) corners of each hull
    on_shared: Singles  # (C,) weight on the shared tokens
    measures: tuple[float, ...]  # MEASURES, NaN where not measured


class Pair:
    """Both trainings of a study, on the same bags in the same order."""

    def __init__(self, study: Study, sides: dict[Pooled, LiveTraining] | None = None) -> None:
        self.study = study
        self.sides = sides or {p: LiveTraining(study.live(p), _bags(study.seed)) for p in POOLINGS}
        self.views: list[dict[Pooled, View]] = []

    def advance(self) -> None:
        """One step more, of both."""
        step = len(self.views)
        frames = {p: side.frame(step) for p, side in self.sides.items()}
        self.views.append({p: view(frame, self.study.tau) for p, frame in frames.items()})

    def forked(self, study: Study) -> Pair:
        """The pair of another study, with what both share."""
        other = Pair(study, {p: side.fork(study.live(p).changes) for p, side in self.sides.items()})
        if study.tau == self.study.tau:
            other.views = self.views[: self.shared_with(study)]
        return other

    def shared_with(self, study: Study) -> int:
        """How many recorded steps another study has too."""
        return min(side.shared_with(study.live(p)) for p, side in self.sides.items())


def view(frame: recorded_training.TrainingFrame, tau: float) -> View:
    """One frame as the page draws it; hulls and overlaps of the tokens that weigh more than tau."""
    assert frame.tokens is not None
    assert frame.histograms is not None
    use = TokenUse.of(frame.tokens, frame.histograms, tau)
    on_shared = use.weight_on(SHARED_TOKENS)
    known = {
        "loss": frame.loss,
        "map_at_r": frame.map_at_r,
        "on_shared": float(on_shared.mean()),
        "intersection": mean_over_pairs(use.intersections()),
        # 120 pairs of polygons: as often as MAP@R.
        "iou": mean_over_pairs(use.ious()) if frame.map_at_r is not None else None,
    }
    found = [known[name] for name in MEASURES]
    return View(
        tokens=_places(frame.tokens),
        samples=_places(frame.embeddings),
        prototypes=_places(np.empty((0, 2)) if frame.prototypes is None else frame.prototypes),
        weights=np.rint(65535 * use.weights.clip(0, 1)).astype(np.uint16),
        active=np.packbits(use.active, axis=1, bitorder="little"),
        corners=_places(np.concatenate([*use.hulls, np.empty((0, 2))])),
        sizes=np.array([len(corners) for corners in use.hulls], dtype=np.uint8),
        on_shared=on_shared.astype(np.float32),
        measures=tuple(np.nan if value is None else value for value in found),
    )


def _places(points: Any) -> NDArray[np.int16]:
    return np.rint(np.asarray(points, dtype=np.float64).clip(-TOKEN_BOUND, TOKEN_BOUND) / SCALE).astype(np.int16)


@lru_cache(maxsize=3)
def _bags(seed: int) -> Dataset:
    return data.load("tokens", seed=seed)


class _Pairs:
    """What is kept here: pairs by their study."""

    def key(self, study: Study) -> str:
        return json.dumps(spec.to_json(study))

    def fresh(self, study: Study) -> Pair:
        return Pair(study)

    def fork(self, history: Pair, study: Study) -> Pair:
        return history.forked(study)

    def shared(self, history: Pair, study: Study) -> int:
        return history.shared_with(study)

    def bytes(self, history: Pair) -> int:
        return FRAME_BYTES * max(len(history.views), *(len(side.frames) for side in history.sides.values()))


KEPT: history_cache.Kept[Study, Pair] = history_cache.Kept(_Pairs())


def answer(request: dict[str, Any]) -> bytes:
    """The steps after request["have"] up to request["want"], as far as they are ready within PATIENCE; at least one.

    Arrays, for each pooling p: p_tokens (K, T, 2), p_samples (K, n, 2), p_corners (., 2) int16; p_prototypes (., 2)
    int16 with p_placed (K,) how many of them each step has; p_weights (K, C, T) uint16; p_active, p_sizes (K, C, .)
    uint8; p_on_shared (K, C), p_measures (K, len(MEASURES)) float32. labels (n,) uint8.
    """
    study = spec.study_of(request.get("study"))
    have = int(bounded(request.get("have"), -1, MOST_STEPS, -1))
    want = int(bounded(request.get("want"), 0, MOST_STEPS, 0))
    pair, lock = KEPT.of(study)
    with lock:
        began = time.monotonic()
        while len(pair.views) <= want and (not pair.views or time.monotonic() - began < PATIENCE):
            pair.advance()
        ready = len(pair.views)
    first = min(have + 1, ready)
    views = pair.views[first : min(ready, want + 1, first + MOST_FRAMES)]
    header = {
        "id": request.get("id") if isinstance(request.get("id"), int) else 0,
        "first": first,
        "count": len(views),
        "ready": ready - 1,
        "measures": list(MEASURES),
        "scale": SCALE,
    }
    if request.get("rest") is True:
        shown = int(bounded(request.get("show"), 0, MOST_STEPS, 0))
        header |= {"query": spec.to_query(study), "runs": {p: study.run(p, shown).to_toml() for p in POOLINGS}}
    gap = pair.sides["gap"]
    arrays: dict[str, Array] = {"labels": gap.dataset.labels[gap.watched].astype(np.uint8)}
    for p in POOLINGS:
        arrays |= {f"{p}_{name}": array for name, array in _columns([v[p] for v in views]).items()}
    return pack(header, arrays)


def _columns(views: list[View]) -> dict[str, Array]:
    if not views:
        return {}
    stacked = {
        name: np.stack([getattr(v, name) for v in views])
        for name in ("tokens", "samples", "weights", "active", "sizes", "on_shared")
    }
    joined = {name: np.concatenate([getattr(v, name) for v in views]) for name in ("prototypes", "corners")}
    placed = np.array([len(v.prototypes) for v in views], dtype=np.uint16)
    measures = np.array([v.measures for v in views], dtype=np.float32)
    return stacked | joined | {"placed": placed, "measures": measures}


async def _toml(request: Request) -> Response:
    pooling = request.path_params["pooling"]
    if pooling not in POOLINGS:
        return Response(status_code=404)
    query = dict(request.query_params)
    step = int(bounded(query.get("step"), 0, MOST_STEPS, 0))
    text = spec.from_query(query).run(pooling, step).to_toml()
    headers = {"Content-Disposition": f'attachment; filename="tokens-{pooling}.toml"'}
    return Response(text, media_type="application/toml", headers=headers)


def curves(study: Study) -> str:
    """The measures of all steps computed so far, as CSV with a column for each pooling and measure."""
    pair, _ = KEPT.of(study)
    rows: list[list[Any]] = [["step", *(f"{p}_{name}" for p in POOLINGS for name in MEASURES)]]
    for step, views in enumerate(list(pair.views)):
        values = [x for p in POOLINGS for x in views[p].measures]
        rows.append([step, *("" if np.isnan(x) else f"{x:.6g}" for x in values)])
    return as_csv(rows)


async def _curves(request: Request) -> Response:
    study = spec.from_query(dict(request.query_params))
    content = await anyio.to_thread.run_sync(curves, study, limiter=history_cache.TURNS)
    headers = {"Content-Disposition": 'attachment; filename="gap-or-gsp.csv"'}
    return Response(content, media_type="text/csv", headers=headers)


ROUTES: list[BaseRoute] = [
    socket_route("/api/gap_or_gsp", answer, heavy=lambda _: True, limiter=history_cache.TURNS),
    Route("/api/gap_or_gsp/tokens-{pooling}.toml", _toml),
    Route("/api/gap_or_gsp/curves.csv", _curves),
]
