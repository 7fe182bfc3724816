"""Training runs and jobs in processes of their own that are killed, or run out of disk, at a given moment.

The processes are forks of one that has trained once (tests/preload.py). With a GPU they are not, because a fork of a
process that has trained on it cannot use it.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import signal
import stat
import sys
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from dmlcore.cli import workers
from dmlcore.cli.options import stop_on_signal
from dmlcore.data import Dataset
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import loop
from tests.started import CARD

KILLED = -signal.SIGKILL  # exit code of a killed process
CONTEXT = multiprocessing.get_context("spawn" if CARD.exists() else "forkserver")
FILES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate")


def begin(run: Run, **fate: Any) -> BaseProcess:
    """Start a process that trains a run and ends as `fate` says.

    Keys of `fate`: die_at_step (SIGKILL itself after that step), die_at_event (SIGKILL itself before the n-th system
    call of its checkpoint saves, with the write half done), die_at_call (SIGKILL itself before the n-th call that
    changes or opens anything in the run store), fill_at (from that step on no file may grow beyond 2,000 bytes), images
    (train on generated images), task (a job instead of training, as in `dml work`, or "create" a run like it, or
    "delete" it) with its settings.
    """
    process = CONTEXT.Process(target=_work, args=(str(run.path.parent), run.id, fate))
    process.start()
    return process


def end(process: BaseProcess) -> int | None:
    """Wait for a process and return its exit code: 0, 1 after an exception, or KILLED."""
    process.join()
    return process.exitcode


def train(run: Run, **fate: Any) -> int | None:
    """Run `begin` and `end`."""
    return end(begin(run, **fate))


def generated_images() -> Dataset:
    random = np.random.default_rng(7)
    labels = np.repeat(np.arange(4), 12)
    images = random.integers(0, 256, (48, 3, 32, 32), dtype=np.uint8)
    splits = {"train": np.arange(0, 48, 3), "validation": np.arange(1, 48, 3), "test": np.arange(2, 48, 3)}
    return Dataset("images", images, labels, tuple("abcd"), splits, None, ())


def die_at_event(countdown: int) -> None:
    """Allow the process to be killed at every fsync and rename of a checkpoint."""
    fsync, replace, link = os.fsync, os.replace, os.link

    def count(name: object) -> bool:
        nonlocal countdown
        countdown -= "ckpt" in str(name)
        return countdown < 0

    def dying_fsync(descriptor: int) -> None:
        if count(os.readlink(f"/proc/self/fd/{descriptor}")):
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(descriptor)

    def dying_replace(source: object, target: object) -> None:
        if count(target):
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    def dying_link(source: object, target: object) -> None:
        if count(target):
            os.kill(os.getpid(), signal.SIGKILL)
        link(source, target)

    os.fsync, os.replace, os.link = dying_fsync, dying_replace, dying_link


def die_at_call(folder: str, countdown: int) -> None:
    """Allow the process to be killed at every file system call in a folder."""
    fsync = os.fsync

    def count(path: object) -> bool:
        nonlocal countdown
        countdown -= os.fsdecode(path).startswith(folder) if isinstance(path, (str, bytes, os.PathLike)) else 0
        return countdown < 0

    def look(event: str, arguments: tuple) -> None:
        if event in FILES and count(arguments[0]):
            os.kill(os.getpid(), signal.SIGKILL)

    def dying_fsync(descriptor: int) -> None:
        if count(os.readlink(f"/proc/self/fd/{descriptor}")):
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(descriptor)

    os.fsync = dying_fsync
    sys.addaudithook(look)


def _work(runs: str, run_id: str, fate: dict[str, Any]) -> None:
    store = RunStore(runs)
    run = store.open(run_id)
    if "die_at_call" in fate:
        die_at_call(runs, fate["die_at_call"])
    if task := fate.get("task"):
        acts = {"create": lambda: store.create(run.spec), "delete": run.delete}
        act = acts.get(task, lambda: workers.work(task, run.id, store.root, fate.get("settings", "")))
        with open(os.devnull, "w") as sys.stdout, open(os.devnull, "w") as sys.stderr:
            act()
        return
    logging.basicConfig(filename=run.path / "log.txt", level=logging.INFO, force=True)
    steps, stopped = 0, stop_on_signal()

    def stop() -> bool:
        nonlocal steps
        steps += 1
        if steps == fate.get("die_at_step"):
            os.kill(os.getpid(), signal.SIGKILL)
        if steps == fate.get("fill_at"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        return stopped()

    if "die_at_event" in fate:
        die_at_event(fate["die_at_event"])
    with run.lock():
        loop.train(run, dataset=generated_images() if fate.get("images") else None, stop=stop)
