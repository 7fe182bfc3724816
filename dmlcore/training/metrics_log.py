"""The rows of metrics.jsonl in order, without a step having to wait for the device; what state.json tells meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from dmlcore.storage.runs import MetricsWriter, Run, RunState
from dmlcore.training.errors import DeferredFiniteCheck

EVERY = 0.25  # seconds between two updates of state.json,
LATER = 1.0  # and of metrics.jsonl on a GPU, which stands idle meanwhile


class MetricsLog:
    """Writes rows, whose numbers may still be tensors on the device, without those that are undefined (0 / 0).

    metrics: None for a process that does not lead the run, which writes nothing.
    check: where steps are judged later. Then rows are kept until the next flush, and nothing is written of a step that
    was not made after all.
    """

    def __init__(self, metrics: MetricsWriter | None, check: DeferredFiniteCheck | None = None) -> None:
        self._metrics, self._check = metrics, check
        self._rows: list[dict[str, Any]] = []
        self._last = time.monotonic()

    def append(self, row: dict[str, Any]) -> None:
        """Write a row, now or later, behind all earlier ones."""
        self._rows.append(row)
        if self._check is None or time.monotonic() - self._last >= LATER:
            self.flush()

    def extend(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write rows, one after another."""
        for row in rows:
            self.append(row)

    def flush(self) -> None:
        """Write all rows, with one transfer for all their numbers; raises StepError."""
        if self._check is not None:
            self._check.wait()
        rows, self._rows, self._last = self._rows, [], time.monotonic()
        if self._metrics is None:
            return
        waiting = [value for row in rows for value in row.values() if isinstance(value, Tensor)]
        numbers = iter(torch.stack([value.detach().double() for value in waiting]).tolist() if waiting else ())
        for row in rows:
            plain = {key: next(numbers) if isinstance(value, Tensor) else value for key, value in row.items()}
            self._metrics.append({key: value for key, value in plain.items() if value == value})

    def sync(self) -> int:
        """Make all rows durable and return their length in bytes."""
        self.flush()
        return self._metrics.sync() if self._metrics else 0


class Reporter:
    """Keeps state.json up to date, at most every EVERY seconds while the message stays the same."""

    def __init__(self, run: Run) -> None:
        self.run, self.state = run, run.state()
        self.step, self.last = self.state.step, 0.0
        self.began = time.monotonic() - self.state.seconds  # as if there had been no interruption

    def __call__(self, step: int, message: str, **changes: Any) -> RunState:
        """Note where the training run stands; changes: of other fields, written at once."""
        self.step, now = step, time.monotonic()
        if changes or message != self.state.message or now - self.last >= EVERY:
            self.state = self.run.update(step=step, message=message, seconds=now - self.began, **changes)
            self.last = now
        return self.state
