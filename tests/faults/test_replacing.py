"""Row 5 of the fault matrix: any interruption of `atomic_files.replace` leaves the complete old or new file."""

import json
import os
import resource
import signal

import pytest

from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files
from dmlcore.storage.runs import MetricsWriter, RunStore

OLD, NEW = b"old " * 1000, b"new " * 1000


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(OLD)
    return path


def in_a_child(act):
    """Return the wait status of a forked child that executes `act`; its resource limits end with it."""
    pid = os.fork()
    if not pid:
        try:
            act()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def test_row_5_a_disk_full_half_way_leaves_the_old_file_and_nothing_beside_it(path):
    def fill():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        atomic_files.replace(path, lambda file: file.write(NEW))

    assert os.waitstatus_to_exitcode(in_a_child(fill)) == 1
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


def test_row_5_kill_9_half_way_leaves_the_old_file_and_the_next_writer_succeeds(path):
    def die(file):
        file.write(NEW[:1234])
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_child(lambda: atomic_files.replace(path, die)) == signal.SIGKILL
    assert path.read_bytes() == OLD
    atomic_files.replace(path, lambda file: file.write(NEW))
    assert path.read_bytes() == NEW
    assert os.listdir(path.parent) == [path.name]


def test_row_5_who_reads_meanwhile_sees_the_old_file_until_the_new_one_is_whole(path):
    seen = []

    def write(file):
        for start in range(0, len(NEW), 500):
            file.write(NEW[start : start + 500])
            file.flush()
            seen.append(path.read_bytes())

    atomic_files.replace(path, write)
    assert set(seen) == {OLD}
    assert path.read_bytes() == NEW


def test_row_5_contents_are_on_the_disk_before_the_name_and_the_name_before_it_returns(path, monkeypatch):
    events = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        target = os.readlink(f"/proc/self/fd/{descriptor}")
        events.append(("directory" if os.path.isdir(target) else "contents", os.path.getsize(target) >= len(NEW)))
        fsync(descriptor)

    def renamed(source, target):
        events.append(("name", True))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    atomic_files.replace(path, lambda file: file.write(NEW))
    assert [name for name, _ in events] == ["contents", "name", "directory"]
    assert events[0] == ("contents", True)


def test_row_5_a_row_that_the_disk_takes_half_of_is_taken_back(tmp_path):
    run = RunStore(tmp_path).create(RunSpec())

    def fill():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with MetricsWriter(run, 0) as metrics:
            metrics.append({"kind": "step", "step": 1, "loss": 0.5})
            whole = metrics.offset
            resource.setrlimit(resource.RLIMIT_FSIZE, (whole + 10, resource.RLIM_INFINITY))
            with pytest.raises(OSError, match="no space left for a row"):
                metrics.append({"kind": "step", "step": 2, "loss": 0.5})
            assert metrics.offset == whole == os.path.getsize(run.path / "metrics.jsonl")

    assert in_a_child(fill) == 0
    assert [row["step"] for row in run.metrics()[0]] == [1]


def test_what_is_not_json_leaves_the_old_file(path):
    for value in (float("nan"), object()):
        with pytest.raises((ValueError, TypeError)):
            atomic_files.replace_json(path, {"seconds": value})
        assert path.read_bytes() == OLD
    atomic_files.replace_json(path, {"seconds": 1.5})
    assert json.loads(path.read_bytes()) == {"seconds": 1.5}
