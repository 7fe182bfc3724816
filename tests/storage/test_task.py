"""States of a task at every moment, also after kills; jobs and downloads are tested elsewhere."""

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
from tests.started import until

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
def new_task(tmp_path: Path) -> Task[ProgressState]:
    return Task(tmp_path / "task", ProgressState)


def test_killed_at_any_moment_it_is_lost_and_readable_and_starts_again(new_task, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(task.__file__).parents[2]))
    for _ in range(6):
        new_task.start(["-c", COUNT, str(new_task.path)], ProgressState())
        assert new_task.is_busy()
        until(lambda: (state := new_task.state()) and state.done > 3)
        time.sleep(random.random() / 20)
        os.kill(new_task.state().pid, signal.SIGKILL)
        until(lambda: not new_task.is_alive())
        state = new_task.state()
        assert (new_task.status(), state.state, state.message) == (
            "lost",
            "running",
            f"stage {state.done - 1:.0f}: on it",
        )


def test_a_start_that_never_came_is_lost_after_a_while_and_at_once_in_another_boot(new_task, monkeypatch) -> None:
    assert (new_task.status(), new_task.log_tail()) == ("never", [])
    monkeypatch.setattr(task, "spawn_detached", lambda *_: None)
    new_task.start(["-c", ""], ProgressState())
    assert new_task.status() == "queued"
    with pytest.raises(JobError, match="already queued or starting"):
        new_task.start(["-c", ""], ProgressState())
    monkeypatch.setattr(task, "LOCK_TIMEOUT", 0.0)
    assert new_task.status() == "lost"
    monkeypatch.undo()
    new_task.record(new_task.state().replace(boot="another"))
    assert new_task.status() == "lost"


def test_of_many_who_start_it_at_once_one_does(new_task, monkeypatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(task, "spawn_detached", lambda *arguments: started.append(arguments))
    new_task.path.mkdir()

    def one() -> None:
        with suppress(JobError):
            new_task.start(["-c", ""], ProgressState())

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started) == 1


def test_details_of_a_stage_are_written_seldom_and_a_new_stage_at_once(new_task, monkeypatch) -> None:
    written: list[str] = []
    record = new_task.record
    monkeypatch.setattr(new_task, "record", lambda state: written.append(state.message) or record(state))

    def job(progress):
        for number in range(1000):
            progress.report(f"t-SNE: iteration {number}", number, 1000)
        progress.report("measuring", 1000, 1000)
        return progress.finished("made")

    end = new_task.execute(job, ProgressState())
    assert (end.state, end.done, new_task.state()) == ("done", 1000, end)
    assert written[:2] == ["starting", "t-SNE: iteration 0"]
    assert written[-2:] == ["measuring", "made"]
    assert len(written) < 20


def test_how_it_ended_is_recorded_and_a_cancel_is_honoured_once(new_task) -> None:
    def fails(progress):
        raise ValueError("no room" * 1000)

    with pytest.raises(ValueError, match="no room"):
        new_task.execute(fails, ProgressState())
    assert (new_task.status(), len(new_task.state().message)) == ("failed", 4000)
    new_task.cancel()
    assert not new_task.cancel_requested(), "a task that has ended"

    def asked_to_end(progress):
        new_task.request_cancel()
        progress.report("next")
        raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        new_task.execute(asked_to_end, ProgressState())
    assert (new_task.status(), new_task.cancel_requested()) == ("cancelled", False)
    new_task.request_cancel()  # queued long before a user starts it in a terminal
    new_task.record(new_task.state().replace(queued=0.0))
    with suppress(KeyboardInterrupt):  # the exception must not end pytest
        new_task.execute(lambda progress: progress.finished("done"), ProgressState())
    assert new_task.status() == "done"


@pytest.mark.parametrize("first", ["file", "signal"])
def test_asked_by_file_and_by_signal_it_ends_once(new_task, monkeypatch, first) -> None:
    """`cancel` uses a file and a signal; the later one once interrupted the final write, and the task was lost."""
    record, handler = new_task.record, signal.getsignal(signal.SIGTERM)

    def interrupted(state):
        if state.state == "cancelled":
            signal.raise_signal(signal.SIGTERM)
        return record(state)

    def asked_to_end(progress):
        new_task.request_cancel()
        if first == "signal":
            signal.raise_signal(signal.SIGTERM)
        progress.report("next")
        raise AssertionError

    monkeypatch.setattr(new_task, "record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        new_task.execute(asked_to_end, ProgressState())
    assert (new_task.status(), new_task.cancel_requested()) == ("cancelled", False)
    assert signal.getsignal(signal.SIGTERM) == handler


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"state": "nonsense"}', '{"done": -1}', '{"done": 1e999}', '{"pid": 1e30}', " " * 2**21],
)
def test_a_damaged_state_is_none(new_task, content) -> None:
    new_task.path.mkdir()
    (new_task.path / "state.json").write_text(content)
    assert (new_task.state(), new_task.status(), new_task.is_busy()) == (None, "never", False)
    new_task.cancel()
    with locks.ProcessLock(new_task.path / "lock"):
        assert new_task.status() == "running"


def test_processes_of_tasks_begin_in_one_place_and_pages_look_again_in_one() -> None:
    """Only `spawn_detached` starts processes, and only `pages.shared.widgets.waiting` polls."""
    root = Path(task.__file__).parents[2]
    sources = {path: path.read_text() for folder in ("dmlcore", "pages") for path in (root / folder).rglob("*.py")}
    for what, place in (("start_new_session", "storage/task.py"), ("run_every", "widgets/waiting.py")):
        (found,) = (path for path, source in sources.items() if what in source)
        assert found.as_posix().endswith(place)


def test_a_state_of_before_and_of_later_opens(new_task) -> None:
    new_task.path.mkdir()
    before = {"state": "cancelled", "message": "x", "done": 5, "total": None, "rate": 0.0, "queued": 3.5, "started": 7}
    (new_task.path / "state.json").write_text(json.dumps(before | {"of a later release": 1}))
    assert (new_task.status(), new_task.state().done, new_task.state().pid) == ("cancelled", 5.0, 0)
