"""Writers of metrics.jsonl, which never make a training step wait for the GPU, and of the progress in state.json."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from dmlcore.storage.runs import MetricsWriter, Run, RunState
from dmlcore.training.errors import DeferredFiniteCheck

EVERY = 0.25  # seconds between two updates of state.json
LATER = 1.0  # seconds between two updates of metrics.jsonl on a GPU, which is idle during an update


class MetricsLog:
    """Writer of metrics rows with values that may still be tensors on the device; NaN values are left out.

    Args:
        metrics: Writer of metrics.jsonl; None in a process other than rank 0, which writes nothing.
        check: Deferred check for NaN and infinity, if any. Rows are then kept until the next flush, so that no row of a
            failed step is written.
    """

    def __init__(self, metrics: MetricsWriter | None, check: DeferredFiniteCheck | None = None) -> None:
        self._metrics, self._check = metrics, check
        self._rows: list[dict[str, Any]] = []
        self._last = time.monotonic()

    def append(self, row: dict[str, Any]) -> None:
        """Append a row, which is written immediately or at the next flush."""
        self._rows.append(row)
        if self._check is None or time.monotonic() - self._last >= LATER:
            self.flush()

    def extend(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append several rows."""
        for row in rows:
            self.append(row)

    def flush(self) -> None:
        """Write all pending rows with one transfer from the device; raise StepError if a step failed."""
        if self._check is not None:
            self._check.wait()
        rows, self._rows, self._last = self._rows, [], time.monotonic()
        if self._metrics is None:
            return
        waiting = [value for row in rows for value in row.values() if isinstance(value, Tensor)]
        numbers = iter(_read(waiting))
        for row in rows:
            plain = {key: next(numbers) if isinstance(value, Tensor) else value for key, value in row.items()}
            self._metrics.append({key: value for key, value in plain.items() if value == value})

    def sync(self) -> int:
        """Write all rows to disk durably and return the length of the file in bytes."""
        self.flush()
        return self._metrics.sync() if self._metrics else 0


def _read(values: list[Tensor]) -> list[float]:
    """Return the values of 0-dimensional tensors, with one kernel per type and one transfer from the device."""
    if not values:
        return []
    places: dict[torch.dtype, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(value.dtype, []).append(place)
    stacked = [torch.stack([values[place].detach() for place in each]).double() for each in places.values()]
    order = [place for each in places.values() for place in each]
    return [number for _, number in sorted(zip(order, torch.cat(stacked).tolist(), strict=True))]


class Reporter:
    """Writer of state.json: at most one update per EVERY seconds while the message stays the same."""

    def __init__(self, run: Run) -> None:
        self.run, self.state = run, run.state()
        self.step, self.last = self.state.step, 0.0
        # includes the time of earlier sessions of an interrupted run
        self.began = time.monotonic() - self.state.seconds

    def __call__(self, step: int, message: str, **changes: Any) -> RunState:
        """Report the current step and message; `changes` sets other fields of the state and is written immediately."""
        self.step, now = step, time.monotonic()
        if changes or message != self.state.message or now - self.last >= EVERY:
            self.state = self.run.update(step=step, message=message, seconds=now - self.began, **changes)
            self.last = now
        return self.state
