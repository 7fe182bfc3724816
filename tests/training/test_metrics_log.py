import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dmlcore.spec import RunSpec
from dmlcore.storage.runs import MetricsWriter, RunStore
from dmlcore.training.errors import DeferredFiniteCheck, StepError
from dmlcore.training.metrics_log import MetricsLog

CPU = torch.device("cpu")
ROWS = [
    {"kind": "step", "step": 1, "loss": torch.tensor(0.1), "active": torch.tensor(0.25, dtype=torch.float64)},
    {"kind": "step", "step": 2, "loss": torch.tensor(0.7), "active": torch.tensor(float("nan"))},
    {"kind": "validation", "step": 2, "map_at_r": None, "histogram": [1, 2]},
]


def write_log(folder: Path, check: DeferredFiniteCheck | None) -> bytes:
    run = RunStore(folder).create(RunSpec())
    with MetricsWriter(run, 0) as file:
        metrics_log = MetricsLog(file, check)
        for row in ROWS:
            metrics_log.append(dict(row))
        if check is not None:
            assert (run.path / "metrics.jsonl").read_bytes() == b""
        assert metrics_log.sync() == (run.path / "metrics.jsonl").stat().st_size
    return (run.path / "metrics.jsonl").read_bytes()


def test_rows_that_wait_are_the_same_rows(tmp_path: Path) -> None:
    later = write_log(tmp_path, DeferredFiniteCheck(CPU))
    assert later == write_log(tmp_path, None)
    rows = [json.loads(line) for line in later.splitlines()]
    assert [len(row.pop("crc")) for row in rows] == [8, 8, 8]
    assert rows[0] == {"kind": "step", "step": 1, "loss": torch.tensor(0.1).item(), "active": 0.25}
    assert rows[1] == {"kind": "step", "step": 2, "loss": torch.tensor(0.7).item()}  # 0 / 0 is left out
    assert rows[2] == ROWS[2]


def test_nothing_is_written_of_a_step_that_was_not_made(tmp_path: Path) -> None:
    run = RunStore(tmp_path).create(RunSpec())
    check = DeferredFiniteCheck(CPU)
    check.note(torch.tensor(torch.nan), [torch.ones(2)], 1, np.arange(2))
    with MetricsWriter(run, 0) as file:
        metrics_log = MetricsLog(file, check)
        metrics_log.append(dict(ROWS[0]))
        with pytest.raises(StepError, match="step 1 failed"):
            metrics_log.sync()
    assert (run.path / "metrics.jsonl").read_bytes() == b""
