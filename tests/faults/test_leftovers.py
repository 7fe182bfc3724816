"""Kills at every file system call of create and delete, and the sweep that removes all traces."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dmlcore.spec import RunSpec
from dmlcore.storage import atomic_files, leftovers, locks
from dmlcore.storage.runs import Run, RunStore

FILES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.scandir", "fcntl.lockf")
MOST = 200


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Age all files and directories beyond the limits of the sweep."""

    def wait() -> None:
        monkeypatch.setattr(leftovers, "FOLDER_AGE", -1.0)
        monkeypatch.setattr(leftovers, "FILE_AGE", -1.0)

    return wait


def dies_at(number: int, act: Callable[[], object]) -> bool:
    """Return True if a child process that is killed before its file system call `number` reaches that call in `act`."""
    pid = os.fork()
    if not pid:
        left = number

        def count(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            if event in FILES:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        act()
        os._exit(0)
    return os.waitpid(pid, 0)[1] == signal.SIGKILL


def ids(store: RunStore) -> list[str]:
    assert list(store.unreadable()) == []
    return sorted(run.id for run in store.list())


def test_a_kill_inside_create_leaves_a_whole_run_or_nothing_after_a_sweep(
    store: RunStore, old: Callable[[], None]
) -> None:
    first, left = store.create(RunSpec()).id, 0
    for number in range(MOST):
        if not dies_at(number, lambda: store.create(RunSpec())):
            break
        left += any(path.name.startswith(".new-") for path in store.root.iterdir())
        for run in store.list():
            assert (run.spec, run.state().state) == (RunSpec(), "queued")
    assert 10 < number < MOST
    assert left > 5
    assert first in ids(store)
    old()
    leftovers.sweep(store.root)
    assert sorted(path.name for path in store.root.iterdir()) == ids(store)
    assert all(sorted(os.listdir(run.path)) == sorted(os.listdir(store.root / first)) for run in store.list())


def test_a_kill_inside_delete_leaves_the_run_or_nothing_after_a_sweep(store: RunStore, old: Callable[[], None]) -> None:
    other = store.create(RunSpec()).id
    left = 0
    for number in range(MOST):
        run = store.create(RunSpec())
        (run.path / "kept").mkdir()
        (run.path / "kept" / "00000000.ckpt").touch()
        if not dies_at(number, run.delete):
            break
        if run.path.exists():
            run.delete()
        left += any(path.name.startswith(".deleted-") for path in store.root.iterdir())
        assert ids(store) == [other]
    assert 10 < number < MOST
    assert left > 5
    old()
    leftovers.sweep(store.root)
    assert os.listdir(store.root) == [other]


HOLDER = """
import sys, time
from pathlib import Path
from dmlcore.storage import locks
with locks.ProcessLock(Path(sys.argv[1])):
    print("holding", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("name", [".new-20261122-x", ".deleted-20261122-x"])
def test_what_a_living_process_works_on_is_never_swept(store: RunStore, old: Callable[[], None], name: str) -> None:
    folder = store.root / name
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    (folder / "spec.json").touch()
    assert leftovers.sweep(store.root) == 0, "the process may be between two calls"
    old()
    command = [sys.executable, "-c", HOLDER, str(folder / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "holding\n"
        assert leftovers.sweep(store.root) == 0
        assert (folder / "spec.json").exists()
        owner.kill()
    assert leftovers.sweep(store.root) == 1
    assert os.listdir(store.root) == []


def test_half_written_files_go_when_they_are_old_and_nobody_works_on_the_run(
    store: RunStore, old: Callable[[], None]
) -> None:
    run = store.create(RunSpec())
    (run.path / "kept").mkdir()
    halves = [".state.json.tmp", ".last.ckpt.new", "embeddings/.abc.npz.tmp", "kept/.00000050.ckpt.new"]
    for half in halves:
        (run.path / half).write_bytes(b"half")
    whole = ["cancel", "embeddings/abc.npz", "kept/00000050.ckpt", ".hidden"]
    for name in whole:
        (run.path / name).touch()
    assert leftovers.sweep(store.root) == 0
    old()
    with run.lock():
        assert leftovers.sweep(store.root) == 0
        run.mark_running()
    assert not any((run.path / half).exists() for half in halves)
    for half in halves:
        (run.path / half).write_bytes(b"half")
    assert leftovers.sweep(store.root) == len(halves)
    assert all((run.path / name).exists() for name in whole)
    assert leftovers.sweep(store.root) == 0


def test_links_and_strange_names_are_left_alone(store: RunStore, old: Callable[[], None], tmp_path: Path) -> None:
    store.root.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (store.root / ".new-link").symlink_to(outside)
    (store.root / ".studies").mkdir()
    (store.root / ".new-").mkdir()
    old()
    assert leftovers.sweep(store.root) == 0
    assert outside.is_dir()
    assert len(os.listdir(store.root)) == 3


def test_no_new_run_has_the_name_of_another_or_of_what_is_left_of_one(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = store.create(RunSpec()).id
    names = iter([taken, "being-made", "being-deleted", "free"])
    for left in (".new-being-made", ".deleted-being-deleted"):
        (store.root / left).mkdir()
    monkeypatch.setattr("dmlcore.storage.runs._new_id", lambda spec: next(names))
    assert store.create(RunSpec()).id == "free"


def test_a_run_that_is_being_made_is_locked(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, write = [], atomic_files.replace_json

    def look(path: Path, value: object) -> None:
        seen.append(locks.is_held_here(path.with_name("lock")))
        write(path, value)

    monkeypatch.setattr(atomic_files, "replace_json", look)
    assert not store.create(RunSpec()).is_alive()
    assert seen == [True]


def test_a_full_disk_at_creation_leaves_nothing(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    store.create(RunSpec())
    with monkeypatch.context() as patched:
        patched.setattr(atomic_files, "replace_json", full)
        with pytest.raises(OSError, match="No space"):
            store.create(RunSpec())
    assert [path.name for path in store.root.iterdir()] == ids(store)


def test_two_may_remove_the_same_folder(tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / str(number)
        for name in range(30):
            (folder / str(name)).mkdir(parents=True)
        threads = [threading.Thread(target=leftovers.remove, args=(folder,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not folder.exists()


@pytest.mark.parametrize("vanishes", ["before its age is read", "before its lock is taken"])
def test_a_run_that_is_completed_during_a_sweep_is_no_leftover(
    vanishes: str,
    store: RunStore,
    old: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Concurrent creation in one store: another process renames its directory after this one has listed it."""
    building = store.root / ".new-x"
    building.mkdir(parents=True)
    old()
    where, name = (leftovers.os, "lstat") if vanishes == "before its age is read" else (locks.os, "open")
    call = getattr(where, name)

    def late(path: object, *more: object) -> object:
        if building.exists() and str(path).startswith(str(building)):
            building.rename(store.root / "x")
        return call(path, *more)

    monkeypatch.setattr(where, name, late)
    assert leftovers.sweep_folders(store.root) == 0
    assert os.listdir(store.root) == ["x"]
    assert not caplog.records


def test_a_new_run_sweeps_what_the_last_crash_left(store: RunStore, old: Callable[[], None]) -> None:
    (store.root / ".new-x").mkdir(parents=True)
    old()
    made: Run = store.create(RunSpec())
    assert os.listdir(store.root) == [made.id]
