"""Labels of the run picker begin with the most important facts, as a narrow box cuts off the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from pages.shared.widgets import run_picker
from tests.pages.conftest import load_page


def test_a_run_is_offered_with_its_trained_score_first(runs: Path) -> None:
    (run,) = RunStore(runs).list()
    scored = next(row for row in run.metrics()[0] if row.get("weights"))
    box = load_page("neighbours", run=run.id).selectbox(key=run_picker.KEY)
    label = next(option for option in box.options if run.id[-4:] in option)
    assert label.startswith(f"MAP@R {100 * scored['map_at_r']:.1f} % · ")
    assert "→" not in label


def test_whatever_a_finished_run_says_the_result_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunStore(tmp_path).create(RunSpec())
    assert run_picker._label(run).startswith("queued · ")
    state = run.state()
    for message, first in (
        ("test MAP@R 14.6 % → 19.7 %", "MAP@R 19.7 %"),
        ("test MAP@R (transductive) 14.6 % → 19.7 %; it moved 3 tensors", "MAP@R 19.7 %"),
        ("test MAP@R none → 9.0 %", "MAP@R 9.0 %"),
        ("test MAP@R none → none", "Digits"),
    ):
        done = state.model_copy(update={"state": "done", "message": message})
        monkeypatch.setattr(type(run), "state", lambda _, done=done: done)
        assert run_picker._label(run).split(" · ")[0] == first
