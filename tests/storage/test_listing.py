"""Listings show the current state of the disk, and their cost depends on the number of changes."""

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from dmlcore.spec import RunSpec
from dmlcore.storage import listing, runs
from dmlcore.storage.listing import RunFacts
from dmlcore.storage.runs import Run, RunError, RunStore


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of runs whose files are read from now on."""
    seen: list[str] = []

    def noted(path: Path) -> RunFacts:
        seen.append(path.name)
        time.sleep(1e-3)  # let other threads run, as a disk access would
        return known(path)

    known = runs._read
    monkeypatch.setattr(runs, "_read", noted)
    return seen


def aged(store: RunStore) -> None:
    """Make the files older than the clock's tick."""
    for path in store.root.glob("*/*.json"):
        os.utime(path, ns=(0, time.time_ns() - 10**9 - path.stat().st_ino))


def renamed(run: Run, name: str) -> Run:
    run.path.rename(run.path.with_name(name))
    return Run(run.path.with_name(name))


def ids(found) -> list[str]:
    return [run.id for run in found]


def test_a_look_reads_only_what_has_changed(store: RunStore, read: list[str]) -> None:
    made = [store.create(RunSpec(seed=seed)) for seed in range(4)]
    aged(store)
    assert ids(store.list()) == ids(reversed(made))
    assert sorted(read) == sorted(ids(made))
    read.clear()
    assert ids(store.list()) == ids(reversed(made))
    assert read == []
    with made[1].lock():
        made[1].update(state="running")
    assert ids(store.find(lambda *_: True, state=("running",))) == [made[1].id]
    assert read == [made[1].id]


def test_old_runs_are_not_read_for_the_newest(store: RunStore, read: list[str]) -> None:
    made = [renamed(store.create(RunSpec(seed=n)), f"20260101-{n:04}-digits-x-{n:04}") for n in range(10, 20)]
    aged(store)
    assert ids(store.newest(2)) == [made[-1].id, made[-2].id]
    assert len(read) == 2
    assert store.count() == 10
    assert ids(store.find(lambda _, brief: brief.data == "digits", 3)) == ids(made[:-4:-1])
    assert len(read) == 3


def test_runs_come_and_go_between_two_looks(store: RunStore) -> None:
    first = store.create(RunSpec())
    assert ids(store.newest(5)) == [first.id]
    for _ in range(20):  # faster than the tick of a directory's modification time
        second = store.create(RunSpec(seed=1))
        assert ids(store.newest(5)) == [second.id, first.id]
        second.delete()
        assert ids(store.newest(5)) == [first.id]
    assert store.count() == 1
    shutil.rmtree(store.root)
    assert (ids(store.list()), store.count()) == ([], 0)
    again = store.create(RunSpec())
    assert ids(store.list()) == [again.id]


def test_names_of_ones_own_stand_at_their_minute(store: RunStore) -> None:
    made = [store.create(RunSpec(seed=seed)) for seed in range(3)]
    mine = renamed(made[1], "my-best")
    old = renamed(made[0], "20200101-0000-digits-x-abcd")
    assert ids(store.list()) == [made[2].id, mine.id, old.id]


@pytest.mark.parametrize("name", ["spec.json", "state.json"])
def test_what_is_damaged_later_is_found_and_what_is_mended_returns(store: RunStore, name: str) -> None:
    good, bad = store.create(RunSpec()), store.create(RunSpec(seed=1))
    aged(store)
    assert ids(store.list()) == [bad.id, good.id]
    whole = (bad.path / name).read_bytes()
    (bad.path / name).write_bytes(b"{" + whole[1:-2] + b"!")
    assert ids(store.newest(5)) == [good.id]
    assert [run_id for run_id, _ in store.unreadable()] == [bad.id]
    assert store.count() == 1
    with pytest.raises(RunError):
        _ = store.open(bad.id).spec, bad.state()
    (bad.path / name).write_bytes(whole)
    assert ids(store.newest(5)) == [bad.id, good.id]
    assert store.unreadable() == []


def test_a_change_of_the_same_size_within_a_tick_is_seen(store: RunStore) -> None:
    run = store.create(RunSpec(seed=1))
    file, tick = run.path / "spec.json", time.time_ns() + 10**10
    os.utime(file, ns=(tick, tick))
    for seed in range(2, 9):
        assert [found.spec.seed for found in store.list()] == [seed - 1]
        file.write_text(file.read_text().replace(f'"seed":{seed - 1}', f'"seed":{seed}'))
        os.utime(file, ns=(tick, tick))  # a file system whose clock stands still
        assert store.open(run.id).spec.seed == seed
        assert [found.spec.seed for found in store.list()] == [seed]


def test_a_spec_is_read_once_for_all(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run = store.create(RunSpec(seed=3))
    aged(store)
    spec = run.spec
    assert store.open(run.id).spec is spec
    monkeypatch.setattr(runs._specs, "most", 1)
    store.create(RunSpec()).spec  # noqa: B018 - pushes the other out
    assert store.open(run.id).spec == spec
    assert store.open(run.id).spec is not spec


def test_the_same_experiment_has_one_digest_whatever_its_label(store: RunStore) -> None:
    made = [store.create(RunSpec(name=name)) for name in ("a", "b")]
    other = store.create(RunSpec(seed=1))
    digest = listing.without_name(RunSpec()).digest()
    assert ids(store.find(lambda _, brief: brief.digest == digest)) == ids(reversed(made))
    assert other.id in ids(store.list())


def test_a_crowd_reads_each_run_once(store: RunStore, read: list[str]) -> None:
    made = [store.create(RunSpec(seed=seed)) for seed in range(20)]
    aged(store)
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(ids(store.list()))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [ids(reversed(made))] * 16
    assert len(read) == 20


def test_a_forked_process_lists_while_a_thread_of_its_parent_does(store: RunStore) -> None:
    store.create(RunSpec())
    held, over = threading.Event(), threading.Event()

    def listing_still() -> None:
        with store._listing()._lock:
            held.set()
            over.wait(60)

    thread = threading.Thread(target=listing_still)
    thread.start()
    held.wait(60)
    pid = os.fork()
    if not pid:
        signal.alarm(20)  # ends the process if the lock stays locked
        os._exit(0 if len(store.list()) == 1 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    over.set()
    thread.join()


def test_scores_are_read_without_the_other_rows(store: RunStore) -> None:
    run = store.create(RunSpec())
    first = {"kind": "scores", "step": 0, "of": "untrained", "map_at_r": 0.25, "recall_at": {"1": 0.5}, "queries": 9}
    rows = [first, {"kind": "step", "step": 1, "loss": 1.5}, first | {"of": "trained", "map_at_r": 0.5}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (run.path / "metrics.jsonl").write_text(text + '{"kind":"scores","of":"torn"')
    assert {of: row["map_at_r"] for of, row in run.scores().items()} == {"untrained": 0.25, "trained": 0.5}
    assert run.scores() == runs.scores(run.metrics()[0])
