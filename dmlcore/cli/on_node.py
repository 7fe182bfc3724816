"""Execution of an order on a cluster node; an order is a request to train a run or to execute a job on it.

On the local machine, the command `work` does the same.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from dmlcore.jobs import launch
from dmlcore.jobs.backends import order
from dmlcore.jobs.backends.address import Address, is_address
from dmlcore.jobs.backends.order import ALONE, Begun, Lost, M, Meeting, NodeOutcome, Order, ProcessPlace
from dmlcore.jobs.backends.remote import cancel_file
from dmlcore.monitoring import logs
from dmlcore.storage.run_directory import LOG
from dmlcore.storage.runs import Run, RunStore
from dmlcore.storage.task import BUSY, JobError, Progress

SEND_INTERVAL = 1.0  # seconds between two uploads of new files to a remote address
_DATA = os.environ.get("DML_DATA")  # as set on this node
log = logging.getLogger("dmlcore")


def carry_out(folder: str, place: ProcessPlace = ALONE) -> None:
    """Execute the order in a folder and write its result there; do nothing if the order was withdrawn.

    Args:
        folder: Path of the order's folder, or its fsspec address.
        place: Rank of this process and network address of its node. Rank 0 executes the order; the other processes only
            take part in training the run.

    Raises:
        OSError: This node cannot access the folder.
    """
    if place.rank:
        _run_follower(folder, place)
        return
    with _local_folder(folder) as root:
        if (wanted := _read_order(root)) is None:
            return
        (root / Meeting.FILE).unlink(missing_ok=True)  # remove the address that a previous attempt of the job published
        order.write(root, Begun(host=platform.node(), pid=os.getpid()))
        store = RunStore(root)
        os.environ["DML_RUNS"] = str(store.root)
        run = store.open(wanted.run)
        losses: list[str] = []
        with _log_to_run(run):
            _set_threads(wanted, place)
            outcome = _execute(run, wanted, _run_leader(root, wanted, place, losses) if wanted.processes > 1 else None)
        order.write(root, Lost(message=losses[0]) if losses else outcome)


def _read_order(root: Path) -> Order | None:
    """Return the order in folder `root`, or None if it was withdrawn.

    As a side effect, $DML_DATA is set to the value configured on this node or, if there is none, to the sender's value.
    Raises OSError if this node cannot access the folder.
    """
    wanted = order.read(root, Order)
    if wanted is None:
        if not root.parent.is_dir():
            raise OSError(
                f"node {platform.node()} cannot access {root.parent}: mount it there, or set folder= of the backend to "
                "a folder that all nodes share or to an address"
            )
    elif data := _DATA or wanted.data:
        os.environ["DML_DATA"] = data
    return wanted


def _set_threads(wanted: Order, place: ProcessPlace) -> None:
    """Let torch use as many threads as the order reserves CPUs on this node.

    This is set for each order, since an earlier task of this process may have set another number.
    """
    import torch

    torch.set_num_threads(wanted.cpus * place.local_size)


@contextmanager
def _run_leader(root: Path, wanted: Order, place: ProcessPlace, losses: list[str]) -> Iterator[None]:
    """Within this context, belong to the process group as rank 0.

    If another process is lost, ProcessError is raised and its message appended to `losses`, so that the caller reports
    a loss, after which the run is retried, and not a failure.
    """
    from dmlcore.processes import ProcessError, apart, local

    def tell(port: int) -> None:
        order.write(root, Meeting(host=place.address, port=port))

    with apart.set_rank(0, wanted.processes, place.local_rank, place.local_size):
        try:
            with local.take_part(lambda: apart.lead(place.address, tell)):
                yield
        except ProcessError as error:
            losses.append(str(error))
            raise


def _run_follower(folder: str, place: ProcessPlace) -> None:
    """Take part in training the run as a rank other than 0, until the run ends.

    An error in this process is written as the result of the order; the loss of another process is not. The function
    returns normally in both cases, so an error that the engine observes always means that a process was lost.
    """
    address = Address(folder) if is_address(folder) else None
    with tempfile.TemporaryDirectory(prefix="dml-") as copy:
        root = Path(copy) / "order" if address else Path(folder)

        def read(kind: type[M]) -> M | None:
            if address:
                address.fetch(root, only=kind.FILE)
            return order.read(root, kind)

        def fail(reason: str) -> None:
            outcome = NodeOutcome(state="failed", message=f"{reason} (on {platform.node()})")
            if read(NodeOutcome) is None:
                if address:
                    address.write(outcome.FILE, outcome.model_dump_json().encode())
                else:
                    order.write(root, outcome)

        def ask() -> tuple[str, int] | None:
            meeting = read(Meeting)
            return (meeting.host, meeting.port) if meeting else None

        read(Order)
        if (wanted := _read_order(root)) is None:
            return
        _set_threads(wanted, place)
        from dmlcore.processes import ProcessError, apart, local
        from dmlcore.training import loop

        try:
            with (
                apart.set_rank(place.rank, wanted.processes, place.local_rank, place.local_size),
                local.take_part(lambda: apart.follow(ask), fail),
            ):
                loop.follow()
        except ProcessError as error:
            log.info("%s", error)
        except Exception:
            log.exception("unexpected error")


def _execute(run: Run, wanted: Order, company: AbstractContextManager[None] | None) -> NodeOutcome:
    from dmlcore.cli import workers

    try:
        if wanted.task == "train":
            state = workers.train_now(run, company)
            ended = "failed" if state.state in BUSY else state.state
            return NodeOutcome.model_validate({"state": ended, "message": state.message})

        def work(progress: Progress[launch.JobState]) -> launch.JobState:
            progress.report("working")
            return progress.finished(workers.run_job(run, wanted.task, wanted.settings, progress))

        asked = launch.JobState.model_validate({"task": wanted.task})
        return NodeOutcome(state="done", message=launch.Job(run).execute(work, asked).message)
    except KeyboardInterrupt:
        return NodeOutcome(state="cancelled", message="cancelled")
    except Exception as error:
        log.exception("unexpected error")
        return NodeOutcome(state="failed", message=str(error) or type(error).__name__)


@contextmanager
def _log_to_run(run: Run) -> Iterator[None]:
    """Within this context, append the log records of this process to the log of the run."""
    file = logging.FileHandler(run.path / LOG)
    file.setFormatter(logging.Formatter(logs.PLAIN))
    log.addHandler(file)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(file)
        file.close()


@contextmanager
def _local_folder(folder: str) -> Iterator[Path]:
    """Yield a local folder with the files of an order.

    If `folder` is an address, this is a temporary copy; its new files are uploaded every SEND_INTERVAL seconds and on
    exit.
    """
    if not is_address(folder):
        yield Path(folder)
        return
    address = Address(folder)
    with tempfile.TemporaryDirectory(prefix="dml-") as copy:
        root, over = Path(copy), threading.Event()
        address.fetch(root)
        sender = threading.Thread(target=_send, args=(address, root, over), daemon=True)
        sender.start()
        try:
            yield root
        finally:
            over.set()
            sender.join()
            address.send(root)


def _send(address: Address, root: Path, over: threading.Event) -> None:
    """Upload new files and fetch the cancel file every SEND_INTERVAL seconds until `over` is set."""
    wanted = order.read(root, Order)
    while wanted and not over.wait(SEND_INTERVAL):
        with contextlib.suppress(OSError, JobError):  # the next round retries
            address.send(root)
            address.fetch(root, only=cancel_file(wanted.task, Run(root / wanted.run)))
