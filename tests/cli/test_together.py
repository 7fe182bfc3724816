"""Data-parallel runs as started by commands."""

import os
import signal
from pathlib import Path

import pytest

from dmlcore.cli import attended, together, workers
from dmlcore.cli.options import CommandError
from dmlcore.jobs import launch
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.runs import RunStore
from dmlcore.training import loop
from tests.started import run_python

pytestmark = pytest.mark.processes

SPEC = RunSpec().with_overrides(
    ["schedule.steps=6", "schedule.checkpoint_every=2", "schedule.validate_every=6", "model.hidden=[16]", "device=cpu"]
)


def children() -> list[int]:
    """Return the processes that this one has started to follow it."""
    numbers = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"\0follow\0" in (path / "cmdline").read_bytes():
                numbers.append(int(path.name))
        except OSError:
            continue
    return numbers


def test_the_death_of_a_process_ends_the_run_which_goes_on_from_its_checkpoint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = RunStore(tmp_path).create(SPEC)
    asked: list[int] = []

    def kill_after_three() -> bool:
        asked.append(1)
        if len(asked) == 3:
            (child,) = children()
            os.kill(child, signal.SIGKILL)
        return False

    with run.lock():
        state = loop.train(run, stop=kill_after_three, company=together.start_company(2))
        assert state.state == "failed"
        assert state.message.startswith("process 2 of 2 was terminated by signal 9. The last checkpoint is valid")
        assert "WORLD_SIZE" not in os.environ
        assert not children()
        saved = checkpoint.load(run.path)
        assert saved
        assert saved.facts["step"] == 2
        launch.prepare_resume(run)
        state = loop.train(run)
    assert state.state == "done"
    assert "processes 2 before, 1 now" in state.message


@pytest.mark.parametrize(("asked", "started"), [(None, 2), (3, 3)])
def test_a_resume_starts_no_more_processes_than_cores_without_being_asked(
    asked: int | None, started: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A run of 64 processes on a cluster, resumed on a laptop."""
    run = RunStore(tmp_path).create(SPEC)
    with run.lock():
        run.update(state="failed", processes=64, backend="ray:head:6379")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(loop, "train", lambda run, **_: run.update(state="done"))
    monkeypatch.setattr(together, "start_company", lambda number: number)
    state = workers.train(run, resume=True, processes=asked)
    assert (state.processes, state.backend) == (started, "")
    assert ("the run had 64 processes; this machine allows 2" in caplog.text) == (asked is None)


def test_torchrun_starts_the_processes_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "short.toml").write_text(SPEC.to_toml())
    command = ["--standalone", "--nproc-per-node", "2", "-m", "dmlcore", "train", str(tmp_path / "short.toml")]
    monkeypatch.setenv("DML_RUNS", str(tmp_path / "runs"))
    ended = run_python("-m", "torch.distributed.run", *command)
    assert ended.returncode == 0, ended.stderr
    (run,) = RunStore(tmp_path / "runs").list()  # a single run, though two processes received the command
    said = [line for line in ended.stdout.splitlines() if not line.startswith("[Gloo]")]  # in torch below 2.9
    assert said == [run.id]
    assert (run.state().state, run.state().processes) == ("done", 2)


def test_as_many_processes_as_torchrun_has_started_or_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [together.count_processes(None, 1), together.count_processes(3, 1), together.count_processes(None, 2)] == [
        1,
        3,
        2,
    ]
    assert together.start_company(1) is None
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert [together.count_processes(None, 1), together.count_processes(4, 2)] == [4, 4]
    with pytest.raises(CommandError, match="torchrun has already started 4"):
        together.count_processes(2, 1)
    with pytest.raises(CommandError, match="torchrun has already started the processes of this run"):
        attended.require_backend("ray")
