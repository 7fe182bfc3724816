"""The examples on the page about networks and training loops of the user run as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dmlcore.spec import own_network
from dmlcore.storage.runs import RunStore, series
from tests.started import run_python

ROOT = Path(__file__).parents[2]
NETWORK, LOOP = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "docs" / "your-network.md").read_text("utf-8"), re.S | re.M
)


def test_the_network_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "mypkg" / "net.py").write_text(NETWORK)
    monkeypatch.setenv(own_network.FOLDER, str(tmp_path))
    monkeypatch.delenv(own_network.NETWORKS, raising=False)
    options = ("model.name=mypkg.net:make", "model.options.width=8", "model.freeze=backbone", "schedule.steps=3")
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    trained = run_python("-m", "dmlcore", "train", "glyphs", *options, "--runs", str(tmp_path / "runs"))
    assert trained.returncode == 0, trained.stderr
    assert RunStore(tmp_path / "runs").list()[0].status() == "done"


def test_the_loop_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_RUNS", str(tmp_path))
    exec(LOOP, {})
    (run,) = RunStore(tmp_path).list()
    rows = run.metrics()[0]
    assert run.status() == "done"
    assert len(series(rows, "step", "weight_norm")[0]) == 30
    assert series(rows, "validation", "map_at_r")[1][-1] > series(rows, "validation", "map_at_r")[1][0] - 0.05
    assert run.scores()["inputs"]["queries"] == 120
