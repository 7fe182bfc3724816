"""Command `python -m dmlcore export`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from dmlcore.cli.main import app
from dmlcore.inspection import selections
from dmlcore.training import build
from tests.inspection import hostile


@pytest.fixture
def made(tmp_path, monkeypatch):
    run, data, table = hostile.make(tmp_path / "runs")
    monkeypatch.setattr(build, "load_data", lambda spec: data)
    monkeypatch.setenv("DML_RUNS", "")  # set by the command
    return run, table


def export(run, to, *more: str):
    return CliRunner().invoke(app, ["export", run.id, "--to", str(to), "--runs", str(run.path.parent), *more])


def test_a_selection_is_written_and_its_path_printed(made, tmp_path):
    run, table = made
    chosen = selections.save(run, table.indices[:4], "a test")
    to = tmp_path / "out" / "projector"
    done = export(run, to, "--selection", chosen.id)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(to)
    assert len((to / "vectors.tsv").read_text().splitlines()) == 4
    assert "is not empty" in str(export(run, to).exception)


def test_what_is_not_there_is_refused(made, tmp_path):
    run, _ = made
    assert "has no such selection" in str(export(run, tmp_path / "a.npz", "--selection", "0" * 16).exception)
    assert "end it in .safetensors, .onnx, .html" in str(export(run, tmp_path / "a.docx").exception)
    assert list(tmp_path.iterdir()) == [run.path.parent]
