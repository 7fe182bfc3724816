"""States of a task at every moment, also after kills; jobs and downloads are tested elsewhere."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dmlcore.storage import locks, task
from dmlcore.storage.task import JobError, ProgressState, Task

COUNT = """
import sys
from pathlib import Path
from dmlcore.storage.task import ProgressState, Task
task = Task(Path(sys.argv[1]), ProgressState)
def job(progress):
    number = 0
    while True:
        progress.report(f"stage {number}: on it", number := number + 1, 10**9)
task.execute(job, ProgressState())
"""


@pytest.fixture
def made(tmp_path: Path) -> Task[ProgressState]:
    return Task(tmp_path / "task", ProgressState)


def until(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_killed_at_any_moment_it_is_lost_and_readable_and_starts_again(made, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(task.__file__).parents[2]))
    for _ in range(6):
        made.start(["-c", COUNT, str(made.path)], ProgressState())
        assert made.is_busy()
        until(lambda: (state := made.state()) and state.done > 3)
        time.sleep(random.random() / 20)
        os.kill(made.state().pid, signal.SIGKILL)
        until(lambda: not made.is_alive())
        state = made.state()
        assert (made.status(), state.state, state.message) == ("lost", "running", f"stage {state.done - 1:.0f}: on it")


def test_a_start_that_never_came_is_lost_after_a_while_and_at_once_in_another_boot(made, monkeypatch) -> None:
    assert (made.status(), made.log_tail()) == ("never", [])
    monkeypatch.setattr(task, "spawn_detached", lambda *_: None)
    made.start(["-c", ""], ProgressState())
    assert made.status() == "queued"
    with pytest.raises(JobError, match="starting already"):
        made.start(["-c", ""], ProgressState())
    monkeypatch.setattr(task, "LOCK_TIMEOUT", 0.0)
    assert made.status() == "lost"
    monkeypatch.undo()
    made.record(made.state().replace(boot="another"))
    assert made.status() == "lost"


def test_of_many_who_start_it_at_once_one_does(made, monkeypatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(task, "spawn_detached", lambda *arguments: started.append(arguments))
    made.path.mkdir()

    def one() -> None:
        with suppress(JobError):
            made.start(["-c", ""], ProgressState())

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started) == 1


def test_details_of_a_stage_are_written_seldom_and_a_new_stage_at_once(made, monkeypatch) -> None:
    written: list[str] = []
    record = made.record
    monkeypatch.setattr(made, "record", lambda state: written.append(state.message) or record(state))

    def job(progress):
        for number in range(1000):
            progress.report(f"t-SNE: iteration {number}", number, 1000)
        progress.report("measuring", 1000, 1000)
        return progress.finished("made")

    end = made.execute(job, ProgressState())
    assert (end.state, end.done, made.state()) == ("done", 1000, end)
    assert written[:2] == ["starting", "t-SNE: iteration 0"]
    assert written[-2:] == ["measuring", "made"]
    assert len(written) < 20


def test_how_it_ended_is_recorded_and_a_cancel_is_honoured_once(made) -> None:
    def fails(progress):
        raise ValueError("no room" * 1000)

    with pytest.raises(ValueError, match="no room"):
        made.execute(fails, ProgressState())
    assert (made.status(), len(made.state().message)) == ("failed", 4000)
    made.cancel()
    assert not made.cancel_requested(), "a task that has ended"

    def asked_to_end(progress):
        made.request_cancel()
        progress.report("next")
        raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        made.execute(asked_to_end, ProgressState())
    assert (made.status(), made.cancel_requested()) == ("cancelled", False)
    made.request_cancel()  # queued long before a user starts it in a terminal
    made.record(made.state().replace(queued=0.0))
    with suppress(KeyboardInterrupt):  # the exception must not end pytest
        made.execute(lambda progress: progress.finished("done"), ProgressState())
    assert made.status() == "done"


@pytest.mark.parametrize("first", ["file", "signal"])
def test_asked_by_file_and_by_signal_it_ends_once(made, monkeypatch, first) -> None:
    """`cancel` uses a file and a signal; the later one once interrupted the final write, and the task was lost."""
    record, handler = made.record, signal.getsignal(signal.SIGTERM)

    def interrupted(state):
        if state.state == "cancelled":
            signal.raise_signal(signal.SIGTERM)
        return record(state)

    def asked_to_end(progress):
        made.request_cancel()
        if first == "signal":
            signal.raise_signal(signal.SIGTERM)
        progress.report("next")
        raise AssertionError

    monkeypatch.setattr(made, "record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.execute(asked_to_end, ProgressState())
    assert (made.status(), made.cancel_requested()) == ("cancelled", False)
    assert signal.getsignal(signal.SIGTERM) == handler


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"state": "nonsense"}', '{"done": -1}', '{"done": 1e999}', '{"pid": 1e30}', " " * 2**21],
)
def test_a_damaged_state_is_none(made, content) -> None:
    made.path.mkdir()
    (made.path / "state.json").write_text(content)
    assert (made.state(), made.status(), made.is_busy()) == (None, "never", False)
    made.cancel()
    with locks.ProcessLock(made.path / "lock"):
        assert made.status() == "running"


def test_processes_of_tasks_begin_in_one_place_and_pages_look_again_in_one() -> None:
    """Only `spawn_detached` starts processes, and only `pages.shared.widgets.waiting` polls."""
    root = Path(task.__file__).parents[2]
    sources = {path: path.read_text() for folder in ("dmlcore", "pages") for path in (root / folder).rglob("*.py")}
    for what, place in (("start_new_session", "storage/task.py"), ("run_every", "widgets/waiting.py")):
        (found,) = (path for path, source in sources.items() if what in source)
        assert found.as_posix().endswith(place)


def test_a_state_of_before_and_of_later_opens(made) -> None:
    made.path.mkdir()
    before = {"state": "cancelled", "message": "x", "done": 5, "total": None, "rate": 0.0, "queued": 3.5, "started": 7}
    (made.path / "state.json").write_text(json.dumps(before | {"of a later release": 1}))
    assert (made.status(), made.state().done, made.state().pid) == ("cancelled", 5.0, 0)
