"""What a node of a cluster does with an order: the same as `work` here, in the folder that came with it."""

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

EVERY = 1.0  # seconds between two looks at an address
_DATA = os.environ.get("DML_DATA")  # of this node
log = logging.getLogger("dmlcore")


def carry_out(folder: str, place: ProcessPlace = ALONE) -> None:
    """Do what the order in a folder says and write the outcome there; nothing where it was withdrawn meanwhile.

    place: where several processes train a run; only the first one works in the folder. Raises OSError where this node
    does not see the folder.
    """
    if place.rank:
        _take_part(folder, place)
        return
    with _here(folder) as root:
        if (wanted := _wanted(root)) is None:
            return
        (root / Meeting.FILE).unlink(missing_ok=True)  # of a job that begins anew
        order.write(root, Begun(host=platform.node(), pid=os.getpid()))
        store = RunStore(root)
        os.environ["DML_RUNS"] = str(store.root)
        run = store.open(wanted.run)
        losses: list[str] = []
        with _logged(run):
            _set_threads(wanted, place)
            outcome = _outcome(run, wanted, _leading(root, wanted, place, losses) if wanted.processes > 1 else None)
        order.write(root, Lost(message=losses[0]) if losses else outcome)


def _wanted(root: Path) -> Order | None:
    """The order; its data set is that of this node, or where whoever sent it has it."""
    wanted = order.read(root, Order)
    if wanted is None:
        if not root.parent.is_dir():
            raise OSError(
                f"the node {platform.node()} does not see {root.parent}: mount it there, or name a folder that all "
                "nodes see, or an address, as folder= of the backend"
            )
    elif data := _DATA or wanted.data:
        os.environ["DML_DATA"] = data
    return wanted


def _set_threads(wanted: Order, place: ProcessPlace) -> None:
    """Whatever the task before in this process has set; a run shares them out among its processes here."""
    import torch

    torch.set_num_threads(wanted.cpus * place.local_size)


@contextmanager
def _leading(root: Path, wanted: Order, place: ProcessPlace, losses: list[str]) -> Iterator[None]:
    """Be the first of the processes of a run; that another one was lost is noted in `losses`, and no failure."""
    from dmlcore.processes import ProcessError, apart, local

    def tell(port: int) -> None:
        order.write(root, Meeting(host=place.address, port=port))

    with apart.placed(0, wanted.processes, place.local_rank, place.local_size):
        try:
            with local.member(lambda: apart.lead(place.address, tell)):
                yield
        except ProcessError as error:
            losses.append(str(error))
            raise


def _take_part(folder: str, place: ProcessPlace) -> None:
    """Be another one of the processes of a run; what fails here alone is the outcome, the loss of another one is not.

    It returns then too: whoever started it shall see an error only where it was lost itself.
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
        if (wanted := _wanted(root)) is None:
            return
        _set_threads(wanted, place)
        from dmlcore.processes import ProcessError, apart, local
        from dmlcore.training import loop

        try:
            with (
                apart.placed(place.rank, wanted.processes, place.local_rank, place.local_size),
                local.member(lambda: apart.follow(ask), fail),
            ):
                loop.follow()
        except ProcessError as error:
            log.info("%s", error)
        except Exception:
            log.exception("unexpected error")


def _outcome(run: Run, wanted: Order, company: AbstractContextManager[None] | None) -> NodeOutcome:
    from dmlcore.cli import workers

    try:
        if wanted.task == "train":
            state = workers.train_now(run, company)
            ended = "failed" if state.state in BUSY else state.state
            return NodeOutcome.model_validate({"state": ended, "message": state.message})

        def work(progress: Progress[launch.JobState]) -> launch.JobState:
            progress.report("working")
            return progress.finished(workers.do(run, wanted.task, wanted.settings, progress))

        asked = launch.JobState.model_validate({"task": wanted.task})
        return NodeOutcome(state="done", message=launch.Job(run).execute(work, asked).message)
    except KeyboardInterrupt:
        return NodeOutcome(state="cancelled", message="cancelled")
    except Exception as error:
        log.exception("unexpected error")
        return NodeOutcome(state="failed", message=str(error) or type(error).__name__)


@contextmanager
def _logged(run: Run) -> Iterator[None]:
    """Let the log of the run have what this process says meanwhile."""
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
def _here(folder: str) -> Iterator[Path]:
    """The folder of an order on this node: itself, or a copy that is sent back while it is worked on."""
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
    """Send what is new, and fetch the request to end, until it is over."""
    wanted = order.read(root, Order)
    while wanted and not over.wait(EVERY):
        with contextlib.suppress(OSError, JobError):  # tried again
            address.send(root)
            address.fetch(root, only=cancel_file(wanted.task, Run(root / wanted.run)))
