"""Process that has torch loaded and forks one child per line of standard input, so that a kill costs no import.

A line is JSON: runs and run (folder and id), and how the child ends: die_at_step (SIGKILL itself after that step),
die_at_event (SIGKILL itself before the n-th system call of its checkpoint saves, with the write half done),
die_at_call (SIGKILL itself before the n-th call that changes or opens anything in that folder), fill_at (from that step
on no file may grow beyond 2,000 bytes), images (train on generated images). task: a job instead of training, as in
`dml work`, or "create" (a run like it) or "delete". Answers are "started PID" and "ended STATUS".
"""

import json
import logging
import os
import resource
import signal
import stat
import sys
import tempfile

import numpy as np
import torch

from dmlcore.cli import workers
from dmlcore.cli.options import stop_on_signal
from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import RunStore
from dmlcore.training import loop
from tests.started import CARD

FILES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate")

torch.set_num_threads(1)  # a forked child cannot use the threads of its parent


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


def child(order: dict) -> None:
    store = RunStore(order["runs"])
    run = store.open(order["run"])
    if "die_at_call" in order:
        die_at_call(order["runs"], order["die_at_call"])
    if task := order.get("task"):
        acts = {"create": lambda: store.create(run.spec), "delete": run.delete}
        act = acts.get(task, lambda: workers.work(task, run.id, store.root, order.get("settings", "")))
        with open(os.devnull, "w") as sys.stdout, open(os.devnull, "w") as sys.stderr:
            act()
        return
    logging.basicConfig(filename=run.path / "log.txt", level=logging.INFO, force=True)
    steps, stopped = 0, stop_on_signal()

    def stop() -> bool:
        nonlocal steps
        steps += 1
        if steps == order.get("die_at_step"):
            os.kill(os.getpid(), signal.SIGKILL)
        if steps == order.get("fill_at"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        return stopped()

    if "die_at_event" in order:
        die_at_event(order["die_at_event"])
    with run.lock():
        loop.train(run, dataset=generated_images() if order.get("images") else None, stop=stop)


def warm_up() -> None:
    """Train once, since torch and scikit-learn import much on first use: 2.5 of 3 seconds."""
    with tempfile.TemporaryDirectory() as folder:
        run = RunStore(folder).create(RunSpec().with_overrides(["schedule.steps=1"]))
        with run.lock():
            loop.train(run)


if not CARD.exists():  # a fork of a process that has trained on a GPU cannot use the GPU
    warm_up()
# A run starts a second faster without the imports of torch.compile, and a third of a second without SymPy.
assert not {"torch._dynamo", "torch._inductor", "sympy"} & set(sys.modules), "a plain training run imported a compiler"
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        child(json.loads(line))
        os._exit(0)
    print("started", pid, flush=True)
    print("ended", os.waitpid(pid, 0)[1], flush=True)
