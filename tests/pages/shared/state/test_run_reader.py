"""Curves are read once and then incrementally; a resumed run overwrites the overlapping steps."""

from __future__ import annotations

import json

import pytest

from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from pages.shared.state import run_reader
from pages.shared.widgets import results
from pages.shared.words import numbers


@pytest.fixture
def run(tmp_path):
    return RunStore(tmp_path).create(RunSpec())


def append(run, *rows):
    with open(run.path / "metrics.jsonl", "a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def step(number, loss):
    return {"kind": "step", "step": number, "loss": loss}


def losses_of(history):
    steps, values = history.loss.arrays()
    return dict(zip(steps.tolist(), values.tolist(), strict=True))


def test_only_what_was_appended_is_read(run):
    reader = run_reader.Reader()
    tested = {"kind": "scores", "step": 0, "of": "inputs", "map_at_r": None, "recall_at": {}, "queries": 0}
    append(run, step(1, 0.5), {"kind": "validation", "step": 0, "map_at_r": 0.25}, tested)
    first = reader.history(run)
    offset = first.offset
    # Replace the bytes read so far by invalid ones of equal length: a reader that continues at its offset ignores them.
    path = run.path / "metrics.jsonl"
    path.write_bytes(b"x" * (path.stat().st_size - 1) + b"\n")
    append(run, step(2, 0.4))
    second = reader.history(run)
    assert losses_of(second) == {1: 0.5, 2: 0.4}
    assert second.validation.arrays()[1].tolist() == [0.25]
    assert set(second.scores) == {"inputs"}
    assert second.offset > offset


def test_terms_of_the_loss_are_curves(run):
    append(run, step(1, 0.5) | {"tcm": 0.25}, step(2, 0.4) | {"tcm": 0.125, "zero_shot": 3.0})
    history = run_reader.Reader().history(run)
    assert [values.tolist() for values in history.measures["tcm"].arrays()] == [[1, 2], [0.25, 0.125]]
    assert "tcm" in results.PANELS


def test_a_torn_last_line_waits(run):
    reader = run_reader.Reader()
    line = json.dumps(step(1, 0.5)) + "\n"
    with open(run.path / "metrics.jsonl", "w") as file:
        file.write(line[:10])
    assert losses_of(reader.history(run)) == {}
    with open(run.path / "metrics.jsonl", "a") as file:
        file.write(line[10:])
    assert losses_of(reader.history(run)) == {1: 0.5}


def test_a_resume_that_cuts_the_file_drops_what_it_cut(run):
    reader = run_reader.Reader()
    append(run, step(1, 0.5), step(2, 0.4), step(3, 0.3))
    reader.history(run)
    path = run.path / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:1]))
    assert losses_of(reader.history(run)) == {1: 0.5}
    append(run, step(2, 0.45))
    assert losses_of(reader.history(run)) == {1: 0.5, 2: 0.45}


def test_losses_and_weights_of_an_ensemble_are_read_by_member_and_cut_by_a_resume(run):
    reader = run_reader.Reader()
    for number in (1, 2, 3):
        parts = {"loss_triplet": number / 2, "loss_proxy_nca": 2.0, "weight_triplet": 0.25, "diversity": 1.5}
        append(run, step(number, 0.5) | parts)
    append(run, {"kind": "validation", "step": 3, "map_at_r": 0.5, "nmi": 0.75})
    append(run, {"kind": "measure", "step": 3, "loss_learning_rate": 0.1}, step(2, 0.4) | {"loss_triplet": 9.0})
    history = reader.history(run)
    assert {panel: set(members) for panel, members in history.members.items()} == {
        "member_losses": {"triplet", "proxy_nca"},
        "member_weights": {"triplet"},
    }
    steps, values = history.members["member_losses"]["triplet"].arrays()
    assert (steps.tolist(), values.tolist()) == ([1, 2], [0.5, 9.0])
    assert history.measures["diversity"].arrays()[1].tolist() == [1.5] * 3
    assert history.measures["nmi"].arrays()[1].tolist() == [0.75]


def test_a_step_that_comes_again_replaces_itself_and_what_followed():
    series = run_reader.Series()
    for number, value in [(1, 1.0), (2, 2.0), (3, 3.0), (2, 20.0)]:
        series.add(number, value)
    steps, values = series.arrays()
    assert (steps.tolist(), values.tolist()) == ([1, 2], [1.0, 20.0])


def test_no_more_runs_stay_in_memory_than_agreed(tmp_path, monkeypatch):
    monkeypatch.setattr(run_reader, "KEPT", 3)
    reader, store = run_reader.Reader(), RunStore(tmp_path)
    made = [store.create(RunSpec()) for _ in range(5)]
    for run in made:
        append(run, step(1, 0.5))
        reader.history(run)
    assert list(reader._known) == [str(run.path) for run in made[-3:]]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (89.4, "89 s"), (90, "2 min"), (5340, "89 min"), (7500, "2 h 5 min")]
)
def test_durations_as_people_say_them(seconds, words):
    assert numbers.duration(seconds) == words
