"""Cached contents of metrics.jsonl files, with one reader for all visitors that reads each line only once."""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from dmlcore.experiments import settings
from dmlcore.significance.gain import TrainingGain, gain
from dmlcore.storage.listing import FileCache
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.run_directory import METRICS, SPEC
from dmlcore.storage.runs import Run
from dmlcore.typing import Floats, Ints
from pages.shared.state.time_left import PACE

KEPT = 256  # maximum number of runs with curves cached in memory
# prefixes of the keys in "step" rows that hold values of ensemble members
MEMBERS = {"loss_": "member_losses", "weight_": "member_weights"}
# keys in "step" rows whose curves are shown next to those of "measure" rows
IN_STEPS = ("diversity", "tcm")
# prefixes of the keys of additional scores, which exist if a run conditions embeddings on neighbours
BESIDE = ("alone", "inductive", "transductive")
MOST_MEMBERS = 32  # maximum number of curves per ensemble that are kept


class Series:
    """Values by ascending step.

    A step that is not larger than the last one means that the run was resumed: values from that step on are removed
    before it is added.
    """

    def __init__(self) -> None:
        self._steps, self._values = array("q"), array("d")

    def add(self, step: int, value: float) -> None:
        if self._steps and step <= self._steps[-1]:
            cut = bisect_left(self._steps, step)
            del self._steps[cut:], self._values[cut:]
        self._steps.append(step)
        self._values.append(value)

    def __len__(self) -> int:
        return len(self._steps)

    def arrays(self) -> tuple[Ints, Floats]:
        """Return copies of steps (n,) and values (n,), because the reader appends to the originals."""
        return np.array(self._steps, dtype=np.int64), np.array(self._values, dtype=np.float64)


@dataclass(frozen=True)
class Histogram:
    """Histograms of distances in one batch, from 0 to `top`, for pairs of the same class and of different classes."""

    step: int
    top: float
    positive: tuple[int, ...]
    negative: tuple[int, ...]


@dataclass
class RunHistory:
    """Contents of a run's metrics.jsonl read so far.

    `scores` maps the evaluated representation ("inputs", "untrained" or "trained") to its "scores" row. `measures`
    holds curves of the values in "measure" rows, of NMI, and of `IN_STEPS`, by name; `histograms` holds the histograms
    in "measure" rows. `members` holds three groups of curves: under "member_losses" and "member_weights" those of an
    ensemble by loss, and under "validation" the additional scores of runs that condition embeddings on neighbours.
    `projections` holds the number of finished projections by step.
    """

    loss: Series = field(default_factory=Series)
    active: Series = field(default_factory=Series)
    validation: Series = field(default_factory=Series)
    measures: dict[str, Series] = field(default_factory=dict)
    histograms: list[Histogram] = field(default_factory=list)
    members: dict[str, dict[str, Series]] = field(default_factory=dict)
    projections: Series = field(default_factory=Series)
    scores: dict[str, Row] = field(default_factory=dict)
    # additional "baseline" rows, by (evaluated representation, split)
    baselines: dict[tuple[str, str], Row] = field(default_factory=dict)
    # (step, seconds) of the latest observations
    pace: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=PACE))
    offset: int = 0

    def take(self, row: Row) -> None:
        kind = row.get("kind")
        if kind == "step":
            self.loss.add(row["step"], row["loss"])
            if "active" in row:
                self.active.add(row["step"], row["active"])
            for name in IN_STEPS:
                if row.get(name) is not None:
                    self.measures.setdefault(name, Series()).add(row["step"], row[name])
            self._of_an_ensemble(row)
        # validation rows before this row evaluated the embeddings before conditioning on neighbours
        elif kind == "conditioning":
            self.members.setdefault("validation", {})["alone"] = self.validation
            self.validation = Series()
        elif kind == "validation":
            if row["map_at_r"] is not None:
                self.validation.add(row["step"], row["map_at_r"])
            for name in BESIDE:
                if row.get(f"{name}_map_at_r") is not None:
                    known = self.members.setdefault("validation", {}).setdefault(name, Series())
                    known.add(row["step"], row[f"{name}_map_at_r"])
            if row.get("nmi") is not None:
                self.measures.setdefault("nmi", Series()).add(row["step"], row["nmi"])
        elif kind == "scores":
            self.scores[row["of"]] = row
        elif kind == "baseline":
            self.baselines[row["of"], row["part"]] = row
        elif kind == "projection":
            self.projections.add(row["step"], row["projection"])
        elif kind == "measure":
            self._measured(row)

    def _of_an_ensemble(self, row: Row) -> None:
        for name, value in row.items():
            for beginning, panel in MEMBERS.items():
                if name.startswith(beginning) and value is not None:
                    known, member = self.members.setdefault(panel, {}), name.removeprefix(beginning)
                    if member in known or len(known) < MOST_MEMBERS:
                        known.setdefault(member, Series()).add(row["step"], value)

    def _measured(self, row: Row) -> None:
        step = row["step"]
        for name, value in row.items():
            if name not in ("kind", "step") and isinstance(value, (int, float)):
                self.measures.setdefault(name, Series()).add(step, value)
        if "positive_histogram" in row:
            # the run was resumed from an earlier step, so later histograms are removed
            while self.histograms and self.histograms[-1].step >= step:
                self.histograms.pop()
            counts = tuple(row["positive_histogram"]), tuple(row["negative_histogram"])
            self.histograms.append(Histogram(step, row["histogram_to"], *counts))


class Reader:
    """Incremental reader of metrics.jsonl files, shared by all visitors: it reads only lines that were appended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, RunHistory] = OrderedDict()
        self._scores: FileCache[dict[str, Row]] = FileCache(10 * KEPT)
        self._gains: FileCache[TrainingGain | None] = FileCache(10 * KEPT)
        self._best: FileCache[float | None] = FileCache(10 * KEPT)
        self._settings: FileCache[dict[str, Any]] = FileCache(10 * KEPT)
        self._variants: FileCache[str] = FileCache(10 * KEPT)

    def history(self, run: Run) -> RunHistory:
        with self._lock:
            known = self._known.pop(str(run.path), None) or RunHistory()
            rows, offset = run.metrics(known.offset)
            if offset < known.offset:  # the run was resumed and its file truncated, so all rows were read again
                known = RunHistory()
            for row in rows:
                known.take(row)
            known.offset = offset
            self._known[str(run.path)] = known
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
            return known

    def scores(self, run: Run) -> dict[str, Row]:
        """Return the test scores of a run.

        No other rows are read, because that would take seconds for a table of many runs.
        """
        with self._lock:
            return self._scores.get(f"{run.path}/{METRICS}", run.scores)

    def gain(self, run: Run) -> TrainingGain | None:
        """Return the gain of a run over its best untrained baseline; None if unknown. Raises RunError."""
        with self._lock:
            return self._gains.get(
                f"{run.path}/{METRICS}", lambda: gain(run.scores(), started=bool(run.spec.model.start))
            )

    def best_validation(self, run: Run) -> float | None:
        """Return the best validation MAP@R of a run, in 0..1; None if the run has no validation scores."""
        with self._lock:
            return self._best.get(f"{run.path}/{METRICS}", run.best_validation)

    def settings(self, run: Run) -> dict[str, Any]:
        """Return the values of all settings in a run's spec by dotted key. Raises RunError."""
        with self._lock:
            return self._settings.get(f"{run.path}/{SPEC}", lambda: settings.settings(run.spec))

    def variant(self, run: Run) -> str:
        """Return the identifier of a run's settings, equal for runs that differ only in the seed. Raises RunError."""
        with self._lock:
            return self._variants.get(f"{run.path}/{SPEC}", lambda: settings.variant(run.spec))


@cache
def reader() -> Reader:
    """Return the reader of this server."""
    return Reader()


def busy(runs: Sequence[Run]) -> bool:
    """Return True if one of the runs is queued or running."""
    return any(run.status() in ("queued", "running") for run in runs)
