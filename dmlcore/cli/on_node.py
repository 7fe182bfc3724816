"""What a node of a cluster does with an order: the same as `work` here, in the folder that came with it."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dmlcore.jobs import launch
from dmlcore.jobs.backends import order
from dmlcore.jobs.backends.address import Address, is_address
from dmlcore.jobs.backends.order import Begun, NodeOutcome, Order
from dmlcore.jobs.backends.remote import cancel_file
from dmlcore.monitoring import logs
from dmlcore.storage.run_directory import LOG
from dmlcore.storage.runs import Run, RunStore
from dmlcore.storage.task import BUSY, Progress

EVERY = 1.0  # seconds between two looks at an address
_DATA = os.environ.get("DML_DATA")  # of this node
log = logging.getLogger("dmlcore")


def carry_out(folder: str) -> None:
    """Do what the order in a folder says and write the outcome there; nothing where it was withdrawn meanwhile.

    Raises OSError where this node does not see the folder.
    """
    with _here(folder) as root:
        wanted = order.read(root, Order)
        if wanted is None:
            if not root.parent.is_dir():
                raise OSError(
                    f"the node {platform.node()} does not see {root.parent}: mount it there, or name a folder that all "
                    "nodes see, or an address, as folder= of the backend"
                )
            return
        order.write(root, Begun(host=platform.node(), pid=os.getpid()))
        store = RunStore(root)
        os.environ["DML_RUNS"] = str(store.root)
        if data := _DATA or wanted.data:
            os.environ["DML_DATA"] = data
        run = store.open(wanted.run)
        with _logged(run):
            outcome = _outcome(run, wanted)
        order.write(root, outcome)


def _outcome(run: Run, wanted: Order) -> NodeOutcome:
    import torch

    from dmlcore.cli import workers

    torch.set_num_threads(wanted.cpus)  # whatever the task before in this process has set
    try:
        if wanted.task == "train":
            state = workers.train_now(run)
            ended = "failed" if state.state in BUSY else state.state
            return NodeOutcome.model_validate({"state": ended, "message": state.message})

        def work(progress: Progress[launch.JobState]) -> launch.JobState:
            progress.say("working")
            return progress.end(workers.do(run, wanted.task, wanted.settings, progress))

        asked = launch.JobState.model_validate({"task": wanted.task})
        return NodeOutcome(state="done", message=launch.Job(run).work(work, asked).message)
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
        with contextlib.suppress(OSError):  # tried again
            address.send(root)
            address.fetch(root, only=cancel_file(wanted.task, Run(root / wanted.run)))
