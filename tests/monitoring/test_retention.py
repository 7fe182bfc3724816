import json
import os
import time

import pytest

from dmlcore.inspection import notes
from dmlcore.monitoring import retention
from dmlcore.monitoring.retention import DAY, Rules
from dmlcore.storage.run_directory import KEPT, LAST, METRICS, PREV, SPEC, STATE
from dmlcore.storage.runs import Run, RunStore
from tests.cli.here import here
from tests.made_runs import make_finished_run


def aged(run: Run, days: float) -> Run:
    then = time.time() - days * DAY
    for name in (STATE, METRICS):
        os.utime(run.path / name, (then, then))
    return run


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CACHE", str(tmp_path / "cache"))
    return RunStore(tmp_path / "runs")


def planned(store, **rules):
    return [removal.what for removal in retention.plan(store, Rules(**rules))]


def test_runs_go_by_age_the_oldest_first_and_only_when_asked(store):
    old, older = aged(make_finished_run(store, [], 0.5), 40), aged(make_finished_run(store, ["seed=1"], 0.5), 50)
    new = aged(make_finished_run(store, ["seed=2"], 0.5), 10)
    assert planned(store, runs=30) == [f"run {older.id}", f"run {old.id}"]
    assert len(store.list()) == 3
    assert [why for _, why in retention.apply(retention.plan(store, Rules(runs=30)))] == ["", ""]
    assert [run.id for run in store.list()] == [new.id]


def test_what_somebody_keeps_or_needs_stays(store):
    """Runs that stay: one with a note, ancestors of a run that stays, a running one, and the newest ones."""
    grand, parent, noted, free = (aged(make_finished_run(store, [f"seed={n}"], 0.5), 90) for n in range(4))
    notes.keep(noted, "the one of the paper", before="")
    for run, origin in ((parent, grand), (child := make_finished_run(store, ["seed=9"], 0.5), parent)):
        spec = json.loads((run.path / SPEC).read_text())
        (run.path / SPEC).write_text(json.dumps(spec | {"fork": spec["fork"] | {"run": origin.id}}))
    aged(parent, 90)
    assert planned(store, runs=30) == [f"run {free.id}"]
    with free.lock():
        assert planned(store, runs=30) == []
    assert planned(store, runs=30, states=("failed",)) == []
    assert planned(store, runs=30, keep=5) == []
    child.delete()
    assert sorted(planned(store, runs=30)) == sorted(f"run {run.id}" for run in (grand, parent, free))


def test_what_came_into_use_after_the_plan_stays(store):
    busy, noted = aged(make_finished_run(store, [], 0.5), 40), aged(make_finished_run(store, ["seed=1"], 0.5), 40)
    plan = retention.plan(store, Rules(runs=30))
    notes.keep(noted, "wait", before="")
    with busy.lock():
        told = {removal.run.id: why for removal, why in retention.apply(plan)}
    assert all(told.values())
    assert set(told) == {run.id for run in store.list()} == {busy.id, noted.id}


def test_checkpoints_go_but_the_last(store):
    run = aged(make_finished_run(store, [], 0.5), 40)
    (run.path / KEPT).mkdir()
    files = [run.path / LAST, run.path / PREV, run.path / KEPT / "00000010.ckpt"]
    for file in files:
        file.write_bytes(b"1234")
    (removal,) = retention.plan(store, Rules(checkpoints=30))
    assert removal.size == 8
    assert [why for _, why in retention.apply([removal])] == [""]
    assert [file.exists() for file in files] == [True, False, False]
    assert planned(store, checkpoints=30) == []


def test_of_the_cache_goes_what_nobody_used(store, tmp_path):
    cache = tmp_path / "cache"
    folders = [cache / "pictures" / "old", cache / "pictures" / "new", cache / "images-0123456789abcdef"]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "data.npy").write_bytes(b"12345")
    (cache / "speed.json").write_text("{}")
    then = time.time() - 40 * DAY
    for place in (folders[0], folders[2], cache / "speed.json", cache / "pictures"):
        os.utime(place, (then, then))
    plan = retention.plan(store, Rules(cache=30))
    assert sorted(removal.what for removal in plan) == ["cached images-0123456789abcdef", "cached pictures/old"]
    assert sum(removal.size for removal in plan) == 10
    assert [why for _, why in retention.apply(plan)] == ["", ""]
    assert [folder.exists() for folder in folders] == [False, True, False]
    assert (cache / "speed.json").exists()


def test_a_clock_that_leaps_removes_nothing_until_somebody_confirms_the_date(store, monkeypatch):
    """A cron job in a wrong year: the clock is checked against the runs, and later against the last removal."""
    aged(make_finished_run(store, [], 0.5), 40)
    new = make_finished_run(store, ["seed=1"], 0.5)
    clean = ["clean", "--old-runs", "30", "--yes", "--runs", str(store.root)]
    real = time.time

    def years_later(years):
        monkeypatch.setattr(time, "time", lambda: real() + years * 365 * DAY)
        monkeypatch.setattr(retention, "today", lambda: f"{2026 + years}-11-26")

    years_later(3)
    answer = here(*clean)
    assert (answer.returncode, "add --date 2029-11-26" in answer.stderr) == (1, True)
    assert "1,095 days after the last write to a run" in answer.stderr
    assert len(store.list()) == 2
    years_later(0)
    assert here(*clean).returncode == 0
    assert [run.id for run in store.list()] == [new.id]
    years_later(3)
    os.utime(new.path / METRICS, (real() + 3 * 365 * DAY - 40 * DAY,) * 2)  # the clock was wrong before, too
    assert "1,095 days after the last removal" in here(*clean).stderr
    assert "the clock of this machine says" in here(*clean, "--date", "2026-11-26").stderr
    assert len(store.list()) == 1
    assert here(*clean, "--date", "2029-11-26").returncode == 0
    assert store.list() == []


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({}, "no retention rule was given"),
        ({"runs": -1}, "runs: the age in days must be 0 or more"),
        ({"cache": float("nan")}, "cache: the age in days must be 0 or more"),
        ({"runs": 1, "keep": -1}, "keep: the number of runs must be 0 or more"),
        ({"runs": 1, "states": ("done", "busy")}, "states: unknown busy; expected some of done"),
    ],
)
def test_rules_that_cannot_be_meant_are_refused(rules, message):
    with pytest.raises(ValueError, match=message):
        Rules(**rules)
