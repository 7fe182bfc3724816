"""Runs that are trained and logged by a program outside DML Lab.

The app shows the curves of such a run during training, and its embeddings when it has finished. Its spec has model.name
= "identity", like that of an imported embedding set, and a finished run is an embedding set. The training program holds
the lock of the run. Its process ID is not recorded, so cancelling the run in the app sends no signal: it sets
`LoggedRun.should_stop`, which the program polls.
"""

from __future__ import annotations

import logging
import math
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from dmlcore.data.embedding_sets.gather import gather
from dmlcore.experiments import embedding_sets
from dmlcore.metrics import RetrievalScores, retrieval
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import IDENTITY, DataSpec, ModelSpec, ScheduleSpec
from dmlcore.storage import leftovers, metrics_rows
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import MetricsWriter, Run, RunError, RunState, RunStore

REPORT_INTERVAL = 0.5  # seconds between two updates of state.json
WORD = "logged"  # word in the ids of these runs
log = logging.getLogger(__name__)


def log_run(
    name: str = "",
    *,
    steps: int | None = None,
    dimensions: int = 64,
    normalize: bool = True,
    runs: str | Path | None = None,
) -> LoggedRun:
    """Start a run for a training loop outside DML Lab; the app lists it immediately and draws its curves.

    With several data-parallel processes, call this on rank 0 only. A program that ends without `finish` or `close`
    leaves a run that the app shows as lost, with all rows logged so far.

    Args:
        name: Name of the run, truncated to 80 characters.
        steps: Number of planned steps, at least 1; None if it is unknown.
        dimensions: Dimension D of the embeddings, at least 1; only displayed.
        normalize: Divide embeddings by their Euclidean norm before they are scored and stored.
        runs: Folder of the run store; by default $DML_RUNS or ./runs.

    Returns:
        Handle of the run. As a context manager it closes the run on exit, as failed if an exception was raised.

    Raises:
        SpecError: If a value is out of range.
        OSError: If the run cannot be written.

    Example:
        >>> import dmlcore
        >>> with dmlcore.log_run("My loop", steps=100) as run:  # doctest: +SKIP
        ...     for step in range(1, 101):
        ...         run.log(step, loss=train_step())
        ...         if run.should_stop:
        ...             break
        ...     run.finish(embeddings, labels)
    """
    store = RunStore(runs)
    run_id = store.free_id(name or WORD, WORD)
    place = store.root / run_id / embedding_sets.FOLDER
    spec = RunSpec.parse(
        {
            "name": name[:80],
            "data": DataSpec(
                name=embedding_sets.READER, root=str(place), split="none", validation="none", standardize=False
            ).model_dump(),
            "model": ModelSpec(name=IDENTITY, normalize=normalize).model_dump() | {"embedding_dim": dimensions},
            "schedule": ScheduleSpec().model_dump() | {"steps": 1 if steps is None else steps},
        }
    )
    return LoggedRun(store.create(spec, run_id), planned=steps)


class LoggedRun:
    """Handle of a run that this program trains, made by `log_run`; it holds the lock of the run until it is closed.

    Attributes:
        run: The run.
    """

    def __init__(self, run: Run, planned: int | None) -> None:
        self.run = run
        self._planned, self._step = planned, 0
        self._began, self._reported = time.monotonic(), -math.inf
        self._lock = run.lock()
        self._lock.__enter__()
        self._open = True
        self._metrics = MetricsWriter(run, 0)
        self._report("training", state="running")

    @property
    def id(self) -> str:
        """Id of the run, as in `dml list` and in addresses of the app."""
        return self.run.id

    @property
    def should_stop(self) -> bool:
        """True once the run has been cancelled in the app or by a command; this program decides when to stop."""
        return self.run.cancel_requested()

    def log(self, step: int, *, loss: Any, **scalars: Any) -> None:
        """Log the loss of a step and further numbers, which the app draws as curves.

        Numbers that are not finite are left out; if the loss is not finite, nothing is logged. Reading a tensor on a
        GPU waits until the step is computed, so log every few steps.

        Args:
            step: Number of the step, at least 0.
            loss: Loss of the step, a number or a tensor with one element.
            scalars: Further numbers or tensors with one element, by the name of their curve.

        Raises:
            ValueError: If a value is not a number, or `step` is negative.
            RunError: If the run is closed.
        """
        row = _finite({"loss": loss} | scalars)
        if "loss" in row:
            self._append({"kind": "step", "step": int(step), **row})
        else:
            log.warning("%s: the loss of step %s is not finite and was not logged", self.id, step)
        self._advance(step)

    def validate(self, step: int, embeddings: Any, labels: Any) -> RetrievalScores:
        """Score embeddings of a validation set, log MAP@R and R@1, and return all scores.

        Args:
            step: Number of the step, at least 0.
            embeddings: Array or tensor (N, D); each sample is a query, compared with the other N - 1.
            labels: N labels, integers or strings.

        Returns:
            All scores, in 0..1.

        Raises:
            ValueError: If shapes do not fit, or an embedding is not finite.
            RunError: If the run is closed.
        """
        vectors, classes = _vectors(embeddings), np.unique(_array(labels), return_inverse=True)[1]
        if classes.shape != vectors.shape[:1]:
            raise ValueError(f"labels: expected one for each of {len(vectors)} embeddings, got {classes.shape}")
        if self.run.spec.model.normalize:
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        scores = retrieval(vectors, classes)
        shown = {"map_at_r": scores.map_at_r, "recall_at_1": scores.recall_at[1]}
        self._append({"kind": "validation", "step": int(step), **shown})
        self._metrics.sync()
        self._advance(step)
        return scores

    def finish(self, embeddings: Any, labels: Any = None, images: Any = None, metadata: Any = None) -> Run:
        """Store the final embeddings, score them and end the run, which is then an embedding set.

        Args:
            embeddings: Array or tensor (N, D), or another input of `dmlcore.show`.
            labels: N labels, see `dmlcore.show`.
            images: Images of the samples, see `dmlcore.show`.
            metadata: Further columns, see `dmlcore.show`.

        Returns:
            The finished run.

        Raises:
            DataError: If the input is invalid; the run stays open.
            RunError: If the run is closed.
        """
        self._require_open()
        self._report("storing the embeddings")
        with tempfile.TemporaryDirectory() as scratch:
            given = gather(_plain(embeddings), _plain(labels), images, metadata, scratch=Path(scratch))
            building = self.run.path / f"{leftovers.NEW}{embedding_sets.FOLDER}"
            leftovers.remove(building)
            try:
                message, rows = embedding_sets.store_in_run(
                    self.run, building, given.table, given.roles, images=given.images, copy_images=given.copy_images
                )
            finally:
                leftovers.remove(building)
        for row in rows:
            self._append(row)
        self._end("done", message)
        return self.run

    def close(self, error: BaseException | None = None) -> RunState:
        """End the run without storing embeddings; a run that has ended is left unchanged.

        Args:
            error: Exception that ended the training; the run is then marked as failed. Otherwise it is marked as
                cancelled if that was requested, else as done.

        Returns:
            Final state of the run.
        """
        if not self._open:
            return self.run.state()
        if error is not None:
            return self._end("failed", f"{type(error).__name__}: {error}")
        if self.should_stop:
            return self._end("cancelled", f"stopped after step {self._step}")
        return self._end("done", f"trained {self._step} steps; no embeddings were stored")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)

    def _require_open(self) -> None:
        if not self._open:
            raise RunError(f"{self.id} has ended; start another run with dmlcore.log_run")

    def _append(self, row: Row) -> None:
        self._require_open()
        if metrics_rows.validate_row(row) is None:
            raise ValueError(
                f"{row['kind']} row of step {row['step']} cannot be logged: give a step from 0 on, and numbers below "
                f"{metrics_rows.MAX_MAGNITUDE:.0e} with names of at most 64 letters, digits and underscores"
            )
        self._metrics.append(row)

    def _advance(self, step: int) -> None:
        self._step = max(self._step, int(step))
        if time.monotonic() - self._reported >= REPORT_INTERVAL:
            self._report("training")

    def _report(self, message: str, **changes: Any) -> RunState:
        self._reported = now = time.monotonic()
        steps = max(self._step, self._planned or 0)
        return self.run.update(
            message=message, step=self._step, steps=steps, seconds=now - self._began, pid=0, **changes
        )

    def _end(self, state: str, message: str) -> RunState:
        self._metrics.sync()
        final = self._report(message, state=state)
        self.run.clear_cancel()
        self._open = False
        self._metrics.__exit__()
        self._lock.__exit__()
        return final


def _finite(values: Mapping[str, Any]) -> dict[str, float]:
    numbers = {}
    for name, value in values.items():
        try:
            numbers[name] = float(_plain(value))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: expected a number or a tensor with one element, got {value!r:.80}") from error
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


def _plain(values: Any) -> Any:
    """Return a tensor as an array on the CPU, and other values unchanged."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    return (values.float() if values.is_floating_point() else values).numpy()


def _array(values: Any) -> np.ndarray[Any, Any]:
    return np.asarray(_plain(values))


def _vectors(embeddings: Any) -> np.ndarray[Any, Any]:
    vectors = _array(embeddings).astype(np.float32)
    if vectors.ndim != 2 or not vectors.size:
        raise ValueError(f"embeddings: expected shape (N, D), got {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise ValueError("embeddings: some values are not finite; check the learning rate and the loss")
    return vectors
