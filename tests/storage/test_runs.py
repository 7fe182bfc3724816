import errno
import fcntl
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage import locks
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import RUN_ID, MetricsWriter, Run, RunError, RunStore, best_validation, scores, series

HOLDER = """
import sys, time
from pathlib import Path
from dmlcore.storage.runs import Run
with Run(Path(sys.argv[1])).lock():
    print("holding", flush=True)
    time.sleep(60)
"""


def step(number: int) -> Row:
    return {"kind": "step", "step": number, "loss": 0.5}


@pytest.fixture
def run(store: RunStore) -> Run:
    return store.create(RunSpec())


def test_a_new_run_is_queued_and_found(store: RunStore) -> None:
    spec = RunSpec().with_overrides(["name=<b>../x</b>", "schedule.steps=7"])
    run = store.create(spec)
    assert RUN_ID.fullmatch(run.id)
    assert store.open(run.id).spec == spec
    assert (run.status(), run.state().steps, run.is_alive()) == ("queued", 7, False)
    assert [found.id for found in store.list()] == [run.id]


def test_ids_hold_nothing_the_user_controls(store: RunStore) -> None:
    run = store.create(RunSpec().with_overrides(["data.name='../../É <x>'", "loss.name=Some_Loss"]))
    assert RUN_ID.fullmatch(run.id)
    assert run.path.parent == store.root


@given(st.text() | st.sampled_from(["..", "../x", "/etc", "a/../b", "%2e%2e", "", ".", "a\0b", "x" * 65]))
def test_row_32_only_ids_of_runs_open(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    root = tmp_path_factory.getbasetemp()
    (root / "spec.json").touch()  # paths to which "." and ".." would lead
    with pytest.raises(RunError, match="no run"):
        RunStore(root / "runs").open(name)


def test_row_32_links_do_not_open(store: RunStore, run: Run, tmp_path: Path) -> None:
    other = store.create(run.spec)
    run.path.rename(tmp_path / "outside")
    (store.root / "link").symlink_to(tmp_path / "outside")
    (store.root / "alias").symlink_to(other.path)  # link to a run in this store
    with pytest.raises(RunError):
        store.open("alias")
    with pytest.raises(RunError):
        store.open("link")
    assert [found.id for found in store.list()] == [other.id]


def test_transitions(run: Run) -> None:
    with run.lock():
        for state in ("running", "failed", "queued", "running", "cancelled", "queued", "running", "done"):
            assert run.update(state=state).state == state
        with pytest.raises(RunError, match="cannot change from done to running"):
            run.update(state="running")
    assert run.status() == "done"


@pytest.mark.parametrize("state", ["done", "dancing"])
def test_forbidden_states_leave_the_old_one(run: Run, state: str) -> None:
    before = (run.path / "state.json").read_bytes()
    with run.lock(), pytest.raises((RunError, ValueError)):
        run.update(state=state)
    assert (run.path / "state.json").read_bytes() == before


def test_only_the_holder_of_the_lock_writes(run: Run) -> None:
    with pytest.raises(RunError, match="holder of the lock"):
        run.update(state="running")


def test_a_killed_owner_is_lost_at_once(run: Run) -> None:
    with run.lock():
        run.update(state="running")
        assert run.status() == "running"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(run.path)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout.readline() == "holding\n"
        assert run.status() == "running"
        assert locks.holder(run.path / "lock") == owner.pid
        with pytest.raises(locks.Busy, match=str(owner.pid)):
            run.delete()
        for _ in range(100):  # reading the status does not take the lock
            assert run.is_alive()
        owner.kill()
        owner.wait()
    assert run.status() == "lost"


@pytest.mark.parametrize("reported", [0, -4711])
def test_a_lock_of_another_machine_is_held(run: Run, reported: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS 4 reports process 0 for it, NFS 3 a negative number."""
    with run.lock():
        run.update(state="running")
    answer = locks._FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, reported)
    monkeypatch.setattr(fcntl, "fcntl", lambda *_: answer)
    assert locks.holder(run.path / "lock") == locks.REMOTE
    assert run.status() == "running"

    def refuse(*_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(locks.Busy, match="in use by another machine"):
        run.delete()


def test_threads_of_one_process_exclude_each_other(run: Run) -> None:
    with run.lock():
        with pytest.raises(locks.Busy), run.lock(wait=0.1):
            pass
        assert run.is_alive()
    assert not run.is_alive()


def test_a_forked_child_does_not_own_its_parents_lock(run: Run) -> None:
    with run.lock():
        pid = os.fork()
        if not pid:
            os._exit(0 if locks.holder(run.path / "lock") == os.getppid() else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert run.is_alive()


def test_a_queued_run_whose_worker_never_came_is_lost(run: Run) -> None:
    with run.lock():
        run.update(queued=run.state().queued - 3600)
    assert run.status() == "lost"


def test_a_torn_last_line_waits(run: Run) -> None:
    path = run.path / "metrics.jsonl"
    path.write_text('{"kind":"step","step":1,"loss":0.5}\n{"kind":"st')
    rows, offset = run.metrics()
    assert [row["step"] for row in rows] == [1]
    with path.open("a") as file:
        file.write('ep","step":2,"loss":0.25}\n')
    more, end = run.metrics(offset)
    assert more == [{"kind": "step", "step": 2, "loss": 0.25}]
    assert run.metrics(end) == ([], end)


@pytest.mark.parametrize("damaged", [b"", b"\0\0\0", b'{"kind":"st', b"\xff\xfe", b"null", b"[1]", b"NaN,"])
def test_a_damaged_line_costs_only_itself(run: Run, damaged: bytes) -> None:
    good = b'{"kind":"step","step":1,"loss":0.5}\n'
    (run.path / "metrics.jsonl").write_bytes(good + damaged + b"\n" + good)
    rows, offset = run.metrics()
    assert [row["step"] for row in rows] == [1, 1]
    assert offset == 2 * len(good) + len(damaged) + 1


@pytest.mark.parametrize("since", [3, 10_000])
def test_an_offset_that_no_longer_fits_starts_over(run: Run, since: int) -> None:
    (run.path / "metrics.jsonl").write_text('{"kind":"step","step":1,"loss":0.5}\n')
    assert run.metrics(since) == run.metrics(0)


def test_the_writer_cuts_to_the_offset_of_the_checkpoint(run: Run) -> None:
    with MetricsWriter(run, 0) as metrics:
        metrics.append(step(1))
        offset = metrics.sync()
        metrics.append(step(2))
    with MetricsWriter(run, offset) as metrics:
        metrics.append(step(3))
    assert run.metrics()[0] == [step(1), step(3)]
    with pytest.raises(RunError, match="it was truncated"):
        MetricsWriter(run, 10_000)


def test_series_and_scores_keep_the_last_row_of_a_step() -> None:
    rows = [
        {"kind": "step", "step": 2, "loss": 1.0},
        {"kind": "step", "step": 1, "loss": 3.0},
        {"kind": "validation", "step": 2, "map_at_r": None},
        {"kind": "step", "step": 2, "loss": 2.0},
        {"kind": "scores", "of": "trained", "step": 2, "map_at_r": 0.5},
    ]
    assert series(rows, "step", "loss") == ([1, 2], [3.0, 2.0])
    assert series(rows, "validation", "map_at_r") == ([], [])
    assert scores(rows)["trained"]["map_at_r"] == 0.5


def test_log_tail_reads_the_end_of_anything(run: Run) -> None:
    assert run.log_tail() == []
    (run.path / "log.txt").write_bytes(b"x\n" * 100_000 + b"\xff broken\nlast\n")
    assert run.log_tail(2) == ["\ufffd broken", "last"]


@pytest.mark.parametrize("name", ["spec.json", "state.json"])
@pytest.mark.parametrize(
    "contents", [b"", b"{", b"[]", b'{"seed": -1, "state": 5}', b"\xff", b'{"name":' + b"[" * 200_000]
)
def test_damaged_runs_are_named_and_do_not_hide_the_others(
    store: RunStore, run: Run, name: str, contents: bytes
) -> None:
    good = store.create(RunSpec())
    (run.path / name).write_bytes(contents)
    (store.root / ".new-half-made").mkdir()
    assert [found.id for found in store.list()] == [good.id]
    [(run_id, reason)] = store.unreadable()
    assert run_id == run.id
    assert name in reason


def test_what_only_looks_like_files_of_a_run_is_named_and_blocks_nobody(store: RunStore, run: Run) -> None:
    good = store.create(RunSpec())
    (run.path / "spec.json").unlink()
    os.mkfifo(run.path / "spec.json")
    for name in ("metrics.jsonl", "lock"):
        (good.path / name).unlink()
        os.mkfifo(good.path / name)
    os.mkfifo(good.path / "log.txt")
    huge = store.create(RunSpec())
    for name in ("state.json", "metrics.jsonl"):
        os.truncate(huge.path / name, 2**40)  # none of its bytes is on disk
    (good.path / "embeddings" / "gone.npz").symlink_to("nowhere")
    (good.path / "embeddings" / "folder.npz").mkdir()
    assert [found.id for found in store.list()] == [good.id]
    assert (good.status(), good.log_tail(), good.embeddings()) == ("queued", [], None)
    assert (run.status(), huge.status()) == ("queued", "unreadable")
    assert (good.metrics(), huge.metrics()) == (([], 0), ([], 2**40))
    assert (good.scores(), huge.scores()) == ({}, {})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, value) for key in ("created", "seconds", "queued") for value in (1e20, -1e20, math.nan, math.inf)),
        *((key, value) for key in ("step", "steps", "pid") for value in (-1, 10**30, 0.5)),
        ("started", -1),
    ],
)
def test_numbers_that_no_state_has_make_a_run_unreadable(store: RunStore, run: Run, key: str, value: float) -> None:
    state = json.loads((run.path / "state.json").read_text())
    (run.path / "state.json").write_text(json.dumps(state | {key: value}))
    assert (run.status(), list(store.list())) == ("unreadable", [])
    assert [(run.id, True)] == [(run_id, key in reason) for run_id, reason in store.unreadable()]


def test_a_message_of_any_length_is_kept_short(run: Run) -> None:
    with run.lock():
        run.update(message="x" * 2**20)
    assert run.state().message == "x" * 3999 + "…"


def test_a_run_that_is_deleted_after_it_was_listed_is_unreadable(store: RunStore, run: Run) -> None:
    (listed,) = store.list()
    run.delete()
    assert listed.status() == "unreadable"


@pytest.mark.parametrize("name", ["-", "--help", "-x", "--runs"])
def test_no_run_is_named_like_an_option(store: RunStore, run: Run, name: str) -> None:
    run.path.rename(store.root / name)
    with pytest.raises(RunError, match="no run"):
        store.open(name)
    assert (list(store.list()), list(store.unreadable())) == ([], [])
    with pytest.raises(SpecError, match=r"fork\.run"):
        RunSpec().with_overrides([f"fork.run='{name}'"])


def test_state_of_a_later_release_opens(run: Run) -> None:
    state = json.loads((run.path / "state.json").read_text())
    (run.path / "state.json").write_text(json.dumps(state | {"invented": 1}))
    assert run.status() == "queued"


def test_delete_removes_the_run(store: RunStore, run: Run) -> None:
    run.delete()
    assert list(store.root.iterdir()) == []


def test_default_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "elsewhere"))
    assert RunStore().root == tmp_path / "elsewhere"
    monkeypatch.delenv("DML_RUNS")
    assert RunStore().root == Path(__file__).parents[2] / "runs"


def test_the_best_validation_is_that_of_the_weights_that_may_be_chosen_and_never_a_test_score():
    rows = [
        {"kind": "validation", "step": 1, "map_at_r": 0.3},
        {"kind": "validation", "step": 2, "map_at_r": None},
        {"kind": "validation", "part": "test", "step": 2, "map_at_r": 0.9},
        {"kind": "scores", "of": "trained", "step": 2, "map_at_r": 0.8},
    ]
    assert best_validation(rows) == 0.3
    conditioned = {"kind": "validation", "step": 3, "map_at_r": 0.2, "alone_map_at_r": 0.1}
    assert best_validation([*rows, conditioned]) == 0.2, "rows since conditioning started"
    assert best_validation(rows[1:]) is None
