"""WebSocket service of the GAP vs GSP page: frames of both training runs, and export of their curves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.routing import BaseRoute

from dmlcore import data
from dmlcore.data import Dataset
from dmlcore.data.synthetic.tokens import shared_tokens
from dmlcore.geometry.token_use import TokenUse, mean_over_pairs
from dmlcore.models.networks import TOKEN_BOUND
from dmlcore.replay import recorded_training
from dmlcore.replay.recorded_training import LiveSpec, LiveTraining
from dmlcore.storage.csv_text import as_csv
from dmlcore.timeline.history import History
from dmlcore.typing import Array, Bytes, Singles
from pages.pooling.gap_vs_gsp.state import MOST_STEPS, POOLINGS, Pooled, PoolingStudy
from pages.shared.server.exports import Query, export_route
from pages.shared.timeline.history_cache import HistoryCache
from pages.shared.timeline.service import Answer, FrameRequest, Timeline

FRAME_BYTES = 15_000  # upper bound of the bytes for one step of one pooling, including the data to send
MEASURES = ("loss", "map_at_r", "on_shared", "intersection", "iou")
# Factor from int16 to coordinates. All points are within TOKEN_BOUND, because tokens and prototypes are clipped and all
# other points are means of tokens.
SCALE = TOKEN_BOUND / 32767


@dataclass(frozen=True, eq=False)
class StudyFrame:
    """Data that the page draws for one pooling at one step; coordinates are int16 in units of SCALE."""

    tokens: NDArray[np.int16]  # (T, 2)
    samples: NDArray[np.int16]  # (n, 2)
    prototypes: NDArray[np.int16]  # (m, 2); (0, 2) before the prototypes are initialised
    weights: NDArray[np.uint16]  # (C, T), 65535 = 1
    active: Bytes  # (C, T / 8), one bit per token
    corners: NDArray[np.int16]  # (., 2), hull corners of all classes, in order
    sizes: Bytes  # (C,), number of corners of each hull
    on_shared: Singles  # (C,), pooling weight on the tokens that all classes share
    measures: tuple[float, ...]  # values of MEASURES, NaN if not measured at this step


@dataclass(frozen=True)
class ShownStudy:
    """Training run to draw; a token is inside the hull of a class if its pooling weight in that class exceeds `tau`."""

    live: LiveSpec
    tau: float


class Views(History[ShownStudy, StudyFrame]):
    """History of a training run, converted to the data that the page draws."""

    most_steps = MOST_STEPS

    def __init__(self, spec: ShownStudy, training: LiveTraining | None = None) -> None:
        super().__init__(spec)
        self.training = training or LiveTraining(spec.live, _bags(spec.live.run.data.name, spec.live.run.seed))

    @property
    def nbytes(self) -> int:
        """Upper bound of the memory that the history uses, in bytes."""
        return FRAME_BYTES * max(len(self.frames), len(self.training.frames))

    def shared_with(self, spec: ShownStudy) -> int:
        """Return how many of the training frames computed so far are also valid for `spec`.

        The threshold tau is ignored, because it does not affect training.
        """
        return self.training.shared_with(spec.live)

    def forked(self, spec: ShownStudy) -> Views:
        """Return a history for `spec` that reuses the training steps shared with the spec of this history.

        The data to draw for these steps are reused, too, if tau is equal.
        """
        other = self._begun(spec, self.shared_with(spec))
        if spec.tau == self.spec.tau:
            other.frames = self.frames[: len(other.training.frames)]
        return other

    def _begun(self, spec: ShownStudy, shared: int) -> Views:
        return Views(spec, self.training.forked(spec.live))

    def _next(self) -> StudyFrame:
        return view(self.training.frame(len(self.frames)), self.spec.tau)


def view(frame: recorded_training.TrainingFrame, tau: float) -> StudyFrame:
    """Convert a training frame to the data to draw; hulls and overlaps use the tokens with weights above tau."""
    assert frame.tokens is not None
    assert frame.histograms is not None
    use = TokenUse.of(frame.tokens, frame.histograms, tau)
    on_shared = use.weight_on(shared_tokens(len(frame.histograms)))
    known = {
        "loss": frame.loss,
        "map_at_r": frame.map_at_r,
        "on_shared": float(on_shared.mean()),
        "intersection": mean_over_pairs(use.intersections()),
        # computed only at steps with MAP@R, because up to 120 pairs of polygons are intersected
        "iou": mean_over_pairs(use.ious()) if frame.map_at_r is not None else None,
    }
    measures = [known[name] for name in MEASURES]
    return StudyFrame(
        tokens=_places(frame.tokens),
        samples=_places(frame.embeddings),
        prototypes=_places(np.empty((0, 2)) if frame.prototypes is None else frame.prototypes),
        weights=np.rint(65535 * use.weights.clip(0, 1)).astype(np.uint16),
        active=np.packbits(use.active, axis=1, bitorder="little"),
        corners=_places(np.concatenate([*use.hulls, np.empty((0, 2))])),
        sizes=np.array([len(corners) for corners in use.hulls], dtype=np.uint8),
        on_shared=on_shared.astype(np.float32),
        measures=tuple(np.nan if value is None else value for value in measures),
    )


def _places(points: Any) -> NDArray[np.int16]:
    return np.rint(np.asarray(points, dtype=np.float64).clip(-TOKEN_BOUND, TOKEN_BOUND) / SCALE).astype(np.int16)


@lru_cache(maxsize=3)
def _bags(name: str, seed: int) -> Dataset:
    return data.load(name, seed=seed)


def contents(asked: FrameRequest[PoolingStudy, Views]) -> Answer:
    """Return header and arrays of the requested steps of both training runs.

    K is the number of steps, T of tokens, n of bags and C of classes. Arrays for each pooling p: p_tokens (K, T, 2),
    p_samples (K, n, 2) and p_corners (., 2), int16; p_prototypes (., 2), int16, with p_placed (K,), the number of
    prototypes at each step; p_weights (K, C, T), uint16; p_active and p_sizes (K, C, .), uint8; p_on_shared (K, C) and
    p_measures (K, len(MEASURES)), float32. Common array: labels (n,), uint8.
    """
    first = asked.histories[0].training
    arrays: dict[str, Array] = {"labels": first.dataset.labels[first.watched].astype(np.uint8)}
    for p, views in zip(POOLINGS, asked.frames, strict=True):
        arrays |= {f"{p}_{name}": array for name, array in _columns(views).items()}
    return {"count": len(asked.steps), "measures": list(MEASURES), "scale": SCALE}, arrays


def rested(study: PoolingStudy, step: int) -> dict[str, Any]:
    """Return the URL query string of the page, and the specs of both runs with the settings in force at `step`."""
    return {"query": study.to_query(), "runs": {p: study.run(p, step).to_toml() for p in POOLINGS}}


TIMELINE: Timeline[PoolingStudy, Views] = Timeline(
    "/api/gap_vs_gsp",
    state_of=PoolingStudy.of,
    specs=lambda study: {p.upper(): ShownStudy(study.live(p), study.tau) for p in POOLINGS},
    kept=HistoryCache(Views),
    contents=contents,
    rested=rested,
    most_steps=MOST_STEPS,
    patience=0.2,
    most_frames=60,
)


def _columns(views: list[StudyFrame]) -> dict[str, Array]:
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


def _toml(pooling: Pooled, query: Query, format: str, dark: bool) -> tuple[str, str]:
    return PoolingStudy.from_query(query).run(pooling, TIMELINE.step(query)).to_toml(), f"tokens-{pooling}.toml"


def curves(study: PoolingStudy) -> str:
    """Return all measures computed so far as CSV, one row per step and one column per pooling and measure."""
    (gap, gsp), _, _ = TIMELINE.computed(study, 0, 0.0)
    rows: list[list[Any]] = [["step", *(f"{p}_{name}" for p in POOLINGS for name in MEASURES)]]
    for step, views in enumerate(zip(list(gap.frames), list(gsp.frames), strict=False)):
        values = [x for shown in views for x in shown.measures]
        rows.append([step, *("" if np.isnan(x) else f"{x:.6g}" for x in values)])
    return as_csv(rows)


ROUTES: list[BaseRoute] = [
    TIMELINE.route,
    *(export_route(f"/api/gap_vs_gsp/tokens-{p}", partial(_toml, p), ("toml",)) for p in POOLINGS),
    export_route(
        "/api/gap_vs_gsp/curves",
        lambda query, format, dark: (curves(PoolingStudy.from_query(query)), "gap-vs-gsp.csv"),
        ("csv",),
    ),
]
