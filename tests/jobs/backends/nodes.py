"""Cluster whose nodes are processes of this machine, forked from a server that has imported torch."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from dmlcore.cli import on_node
from dmlcore.data import DataError
from dmlcore.jobs.backends.submission import ProcessPlace, Submission
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training import loop, starts

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])
Before = Callable[[Submission, int], object]  # called in each process of a task, with the rank


class LocalEngine:
    """Engine that starts a process per rank; the n-th of `before` is called in the processes of the n-th attempt."""

    title = "Here"

    def __init__(self, *before: Before, begins: bool = True, requeues: bool = False) -> None:
        self.before, self.begins, self.requeues = list(before), begins, requeues
        self.submissions: list[Submission] = []

    def submit(self, submission, spec):
        self.submissions.append(submission)
        work: list[tuple[Any, Connection]] = []
        self.start(submission, work)
        return work

    def start(self, submission, work):
        before = self.before.pop(0) if self.before else do_nothing
        for rank in range(submission.processes if self.begins else 0):
            receiver, sender = FORKS.Pipe(duplex=False)
            process = FORKS.Process(target=execute, args=(submission, rank, before, sender), daemon=True)
            process.start()
            work.append((process, receiver))

    def ended(self, work):
        over = bool(work) and (not work[0][0].is_alive() or any(process.exitcode for process, _ in work))
        if over and self.requeues:  # as SLURM does after a preemption
            work.clear()
            self.requeues = False
            return False
        return over

    def reason(self, work):
        for process, receiver in work:
            if process.exitcode:
                return (receiver.recv(), False) if process.exitcode > 0 else ("the node is gone", True)
        return "a process of the run has stopped", True

    def withdraw(self, work):
        for process, _ in work:
            process.kill()

    def release(self, work):
        for process, _ in work:
            process.join(60)

    def waits_for(self, spec, processes):
        return "waiting for room"


def execute(submission: Submission, rank: int, before: Before, sender: Connection) -> None:
    before(submission, rank)
    try:
        on_node.carry_out(submission, ProcessPlace(rank=rank))
    except Exception as error:
        sender.send(str(error))
        raise SystemExit(1) from None


def do_nothing(submission: Submission, rank: int) -> None:
    """Execute the submission without a fault."""


def kill(*_: object) -> None:
    """End this process as a lost node does."""
    os.kill(os.getpid(), signal.SIGKILL)


def at_step(wanted: int, do: Callable[[], object]) -> None:
    step = loop.step

    def watched(state, number, *more):
        if number == wanted:
            do()
        return step(state, number, *more)

    loop.step = watched


def kill_at_25(submission: Submission, rank: int) -> None:
    at_step(25, kill)


def kill_second_at_25(submission: Submission, rank: int) -> None:
    if rank:
        at_step(25, kill)


def stop_at_7(submission: Submission, rank: int) -> None:
    """Create the file `stopped` and stop without an end, as a machine does that is cut off."""

    def stop() -> None:
        (submission.folder / "stopped").touch()
        os.kill(os.getpid(), signal.SIGSTOP)

    at_step(7, stop)


def see_another_store(submission: Submission, rank: int) -> None:
    submission.lock_file.unlink()


def cancel_at_7(submission: Submission, rank: int) -> None:
    """Cancel as a page does."""
    at_step(7, RunStore(submission.store).open(submission.run).cancel)


def lack_data_on_second(submission: Submission, rank: int) -> None:
    def load_data(spec):
        raise DataError("digits: no such data here")

    if rank:
        starts.load_data = load_data


def report_threads(submission: Submission, rank: int) -> None:
    def train(run: Run, **_: object) -> object:
        import torch

        return run.update(state="failed", message=f"{torch.get_num_threads()} threads")

    loop.train = train
