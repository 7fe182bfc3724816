"""Finished runs with chosen scores, written without training, for tests of code that compares many runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from dmlcore.spec import RunSpec
from dmlcore.storage.metrics_rows import to_line
from dmlcore.storage.run_directory import METRICS
from dmlcore.storage.runs import Run, RunStore


def make_finished_run(store: RunStore, overrides: Iterable[str], score: float, steps: int = 40) -> Run:
    """Create a finished run with `steps` rows of its loss; its test and best validation MAP@R are `score` in [0, 1]."""
    spec = RunSpec().with_overrides([f"schedule.steps={steps}", *overrides])
    run = store.create(spec)
    (run.path / METRICS).write_bytes(b"".join(map(to_line, _rows(score, steps))))
    with run.lock():
        run.update(state="running", step=0)
        run.update(state="done", step=steps, seconds=12.0, message="done")
    return run


def _rows(score: float, steps: int) -> list[dict[str, Any]]:
    losses = [
        {"kind": "step", "step": step, "loss": math.exp(-step / 20) * (1 + 0.3 * math.sin(step)), "active": 0.5}
        for step in range(1, steps + 1)
    ]
    validations = [
        {"kind": "validation", "step": step, "map_at_r": score * step / steps, "recall_at_1": score * step / steps}
        for step in range(0, steps + 1, 10)
    ]
    scores = [
        {"kind": "scores", "step": steps, "of": of, "map_at_r": value, "queries": 100, "recall_at": {"1": value}}
        for of, value in (("inputs", 0.3), ("untrained", 0.2), ("trained", score))
    ]
    return [*losses, *validations, *scores]
