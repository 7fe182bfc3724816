"""Ray as an engine: each task on a run is a Ray task with its demands; Ray queues, places, and tells of lost nodes."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from dmlcore.jobs.backends.choice import BackendChoice
from dmlcore.jobs.backends.order import ON_NODE
from dmlcore.spec import RunSpec
from dmlcore.storage.task import JobError

START = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 ray start --head --include-dashboard=false --disable-usage-stats"
# What Ray takes on systems without clusters: it then binds to the loopback, and to nothing else.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
LOOK = 5.0  # seconds between two questions what the nodes have


def carry_out(folder: str) -> None:
    """On the node: what the command line does with an order there."""
    import_module(ON_NODE).carry_out(folder)


class RayEngine:
    """The tasks of one process on a Ray cluster, which is connected to when there is a first one."""

    title = "Ray"

    def __init__(self, choice: BackendChoice) -> None:
        self._choice = choice
        self._asked, self._largest = 0.0, (0.0, 0.0)

    def submit(self, folder: str, spec: RunSpec) -> Any:
        """A Ray task; raises JobError where there is no cluster."""
        ray = connected(self._choice.address)
        demand = {"num_cpus": self._choice.cpus, "num_gpus": self._gpus(spec)}
        if self._choice.gigabytes:
            demand["memory"] = int(self._choice.gigabytes * 2**30)
        # A lost task is tried again by its attendant, from what came through, in a folder of its own.
        task = ray.remote(carry_out).options(name=Path(folder).name, max_retries=0, **demand)
        return task.remote(folder)

    def ended(self, work: Any) -> bool:
        """Whether the task has ended."""
        ray = connected(self._choice.address)
        return bool(ray.wait([work], timeout=0)[0])

    def reason(self, work: Any) -> tuple[str, bool]:
        """An exception of the task, or what happened to its worker or node."""
        ray = connected(self._choice.address)
        try:
            ray.get(work)
        except ray.exceptions.RayTaskError as error:
            why = str(error.cause or error).strip().splitlines()[-1]
            lacks = "ModuleNotFoundError" in why or isinstance(error.cause, ModuleNotFoundError)
            return why + ("; install the same release of the lab on every node" if lacks else ""), False
        except ray.exceptions.RayError as error:
            return str(error).strip().partition("\n")[0].partition(". ")[0], True
        return "the folder of its order was gone before it began", False

    def withdraw(self, work: Any) -> None:
        """Take a task out of the queue."""
        connected(self._choice.address).cancel(work)

    def waits_for(self, spec: RunSpec) -> str:
        """The demands, and whether any node could ever meet them."""
        cpus, gpus = self._choice.cpus, self._gpus(spec)
        wanted = f"{cpus} CPU{'s' if cpus > 1 else ''}" + (f" and {gpus} GPU{'s' if gpus > 1 else ''}" if gpus else "")
        most_cpus, most_gpus = self._nodes()
        if cpus > most_cpus or gpus > most_gpus:
            most = f"{most_cpus:g} CPUs, {most_gpus:g} GPUs"
            return f"waiting for a node with {wanted}: the cluster has none (at most {most})"
        return f"waiting in the queue of Ray for {wanted}"

    def _gpus(self, spec: RunSpec) -> int:
        if spec.device == "cpu":
            return 0
        if self._choice.gpus is not None:
            return self._choice.gpus
        return 1 if spec.device == "cuda" or self._nodes()[1] else 0

    def _nodes(self) -> tuple[float, float]:
        """Most CPUs and most GPUs of a node that is alive."""
        if time.monotonic() - self._asked > LOOK or not self._asked:
            nodes = [node["Resources"] for node in connected(self._choice.address).nodes() if node["Alive"]]
            most = [max((node.get(what, 0.0) for node in nodes), default=0.0) for what in ("CPU", "GPU")]
            self._asked, self._largest = time.monotonic(), (most[0], most[1])
        return self._largest


def connected(address: str) -> ModuleType:
    """Ray, connected to the cluster at this address; "": $RAY_ADDRESS, or the one that runs here. Raises JobError."""
    where = address or os.environ.get("RAY_ADDRESS", "") or _running_here()
    host, _, port = where.rpartition(":")
    if host in ("127.0.0.1", "localhost"):
        os.environ.setdefault(LOOPBACK, "0")  # read when Ray is imported: else it looks for the machine's other address
    if (known := sys.modules.get("ray")) and known.is_initialized():
        return known
    try:  # Ray itself would try for minutes
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise JobError(f"backend ray: no cluster answers at {where} ({error}); start one: {START}") from None
    import ray

    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ray.init(address=where, log_to_driver=False, logging_level=logging.ERROR, namespace="dml-lab")
    except (ConnectionError, RuntimeError, ValueError) as error:
        why = str(error).strip().partition("\n")[0]
        raise JobError(f"backend ray: no cluster answers at {where} ({why}); start one: {START}") from None
    finally:
        if main:  # Ray ends the process at once; here it ends after the current step
            for number, handler in before.items():
                signal.signal(number, handler)
    module: ModuleType = ray
    return module


def _running_here() -> str:
    """The address that the last `ray start` on this machine has left; raises JobError where there is none."""
    folder = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir())
    try:
        return (folder / "ray" / "ray_current_cluster").read_text().strip()
    except OSError:
        raise JobError(f"backend ray: no cluster runs on this machine; start one: {START}") from None
