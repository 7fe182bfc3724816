"""Engine for Ray clusters: one Ray task per process of a run or job; Ray queues, places and monitors these tasks."""

from __future__ import annotations

import logging
import math
import os
import socket
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from dmlcore.jobs.backends.choice import BackendChoice
from dmlcore.jobs.backends.submission import ON_NODE, ProcessPlace, Submission
from dmlcore.spec import RunSpec
from dmlcore.storage.task import JobError

# command that creates a Ray token; the umask keeps other accounts from reading it
MAKE_TOKEN = "(umask 077; ray get-auth-token --generate >/dev/null)"
START = (
    "RAY_AUTH_MODE=token RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 "
    "ray start --head --include-dashboard=false --disable-usage-stats"
)
HOW_TO_START = f"start one: {MAKE_TOKEN} && {START}"
# time limit in seconds for connecting; without it, Ray retries forever if another service listens at the address
CONNECT_TIMEOUT = 120.0
# environment variable that enables clusters on Windows and macOS; with 0, Ray binds to the loopback interface only
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
POLL_INTERVAL = 5.0  # seconds between two queries of the nodes' resources


def carry_out(submission: Submission, rank: int = 0) -> None:
    """Execute a submission within a Ray worker, which sees only the GPUs that Ray has assigned to it."""
    import ray

    import_module(ON_NODE).carry_out(submission, ProcessPlace(rank=rank, address=ray.util.get_node_ip_address()))


@dataclass(frozen=True)
class RayWork:
    """Work submitted to Ray: one Ray task per process and, for several processes, the placement group they share."""

    tasks: list[Any]
    room: Any = None


class RayEngine:
    """Engine that submits work to a Ray cluster; it connects to the cluster on the first submission."""

    title = "Ray"

    def __init__(self, choice: BackendChoice) -> None:
        self._choice = choice
        self._asked = 0.0
        self._known: list[tuple[float, float]] = []

    def submit(self, submission: Submission, spec: RunSpec) -> RayWork:
        """Submit one Ray task per process.

        Several tasks are in one placement group, so they start together or not at all. Raises JobError if no cluster
        can be reached.
        """
        ray, processes = connect(self._choice.address), submission.processes
        demand = {"CPU": self._choice.cpus, "GPU": self._gpus(spec)}
        if self._choice.gigabytes:
            demand["memory"] = int(self._choice.gigabytes * 2**30)
        room: Any = None
        places: list[dict[str, Any]] = [{}]
        if processes > 1:
            bundle = {what: number for what, number in demand.items() if number}
            room = ray.util.placement_group([bundle] * processes, strategy="PACK")
            places = [
                {"scheduling_strategy": ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(room, rank)}
                for rank in range(processes)
            ]
        # Ray must not retry a lost task: the monitoring process retries it once the lock of its run is free.
        asked: dict[str, Any] = {"num_cpus": demand.pop("CPU"), "num_gpus": demand.pop("GPU"), **demand}
        asked |= {"name": f"{submission.run}.{submission.token}", "max_retries": 0}
        task = ray.remote(carry_out)
        tasks = [task.options(**asked, **place).remote(submission, rank) for rank, place in enumerate(places)]
        return RayWork(tasks, room)

    def ended(self, work: RayWork) -> bool:
        """Return True once the task of rank 0 has ended or another one has failed.

        The process of rank 0 writes the result on behalf of all processes.
        """
        return any(task == work.tasks[0] or error for task, error in self._over(work))

    def reason(self, work: RayWork) -> tuple[str, bool]:
        """Return an error message about the ended work, and True if a worker or its node was lost.

        An exception raised in a task is reported first, and then the second item is False.
        """
        ray = connect(self._choice.address)
        errors = [error for _, error in self._over(work) if error]
        for error in errors:
            if isinstance(error, ray.exceptions.RayTaskError):
                why = str(error.cause or error).strip().splitlines()[-1]
                lacks = "ModuleNotFoundError" in why or isinstance(error.cause, ModuleNotFoundError)
                return why + ("; install the same release of the lab on every node" if lacks else ""), False
        for error in errors:
            return str(error).strip().partition("\n")[0].partition(". ")[0], True
        return "a process of the run has stopped", True

    def _over(self, work: RayWork) -> list[tuple[Any, Exception | None]]:
        """Return the tasks that have ended, each with its error; None for a task that succeeded."""
        ray = connect(self._choice.address)
        over: list[tuple[Any, Exception | None]] = []
        for task in ray.wait(work.tasks, num_returns=len(work.tasks), timeout=0)[0]:
            try:
                ray.get(task)
            except ray.exceptions.RayError as error:
                over.append((task, error))
            else:
                over.append((task, None))
        return over

    def withdraw(self, work: RayWork) -> None:
        """Cancel all tasks, and remove their placement group, which kills those that are running in it."""
        ray = connect(self._choice.address)
        for task in work.tasks:
            ray.cancel(task)
        self.release(work)

    def release(self, work: RayWork) -> None:
        """Remove the placement group of the work, if it has one."""
        if work.room is not None:
            connect(self._choice.address).util.remove_placement_group(work.room)

    def waits_for(self, spec: RunSpec, processes: int) -> str:
        """Return a message about the required resources, and about a shortage if the cluster does not have as many."""
        cpus, gpus = self._choice.cpus, self._gpus(spec)
        wanted = f"{cpus} CPU{'s' if cpus > 1 else ''}" + (f" and {gpus} GPU{'s' if gpus > 1 else ''}" if gpus else "")
        nodes = self._nodes()
        room = int(sum(min(node[0] // cpus, node[1] // gpus if gpus else math.inf) for node in nodes))
        if not room:
            most_cpus, most_gpus = (max((node[i] for node in nodes), default=0.0) for i in (0, 1))
            most = f"{most_cpus:g} CPUs, {most_gpus:g} GPUs"
            return f"waiting for a node with {wanted}: the cluster has none (at most {most})"
        if room < processes:
            return f"waiting for nodes: {processes} processes need {wanted} each, and the cluster has room for {room}"
        return f"waiting in Ray's queue for {f'{processes} times ' if processes > 1 else ''}{wanted}"

    def _gpus(self, spec: RunSpec) -> int:
        if spec.device == "cpu":
            return 0
        if self._choice.gpus is not None:
            return self._choice.gpus
        return 1 if spec.device == "cuda" or any(gpus for _, gpus in self._nodes()) else 0

    def _nodes(self) -> list[tuple[float, float]]:
        """Return the numbers of CPUs and GPUs of each live node, queried at most every POLL_INTERVAL seconds."""
        if time.monotonic() - self._asked > POLL_INTERVAL or not self._asked:
            nodes = [node["Resources"] for node in connect(self._choice.address).nodes() if node["Alive"]]
            self._asked, self._known = (
                time.monotonic(),
                [(node.get("CPU", 0.0), node.get("GPU", 0.0)) for node in nodes],
            )
        return self._known


def connect(address: str) -> ModuleType:
    """Connect to the Ray cluster at `address` and return the module `ray`.

    If `address` is empty, use the cluster in $RAY_ADDRESS or, if that is not set, the one running on this machine.
    Raises JobError if no cluster can be reached.
    """
    where = address or os.environ.get("RAY_ADDRESS", "") or _local_cluster()
    host, _, port = where.rpartition(":")
    if host in ("127.0.0.1", "localhost"):
        # Ray reads this variable on import. Without it, Ray uses the public address of this machine instead of
        # loopback.
        os.environ.setdefault(LOOPBACK, "0")
        if _has_token():  # when the address is given explicitly, Ray sends no token by default
            os.environ.setdefault("RAY_AUTH_MODE", "token")
    if (known := sys.modules.get("ray")) and known.is_initialized():
        return known
    try:  # detect a missing cluster early, since Ray itself would retry for minutes
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise JobError(f"backend ray: cannot connect to a cluster at {where} ({error}); {HOW_TO_START}") from None
    import ray

    # Connect in another thread: in the main thread, Ray would install signal handlers that end the process immediately,
    # but a run has to complete its current step first.
    errors: list[Exception] = []
    connecting = threading.Thread(target=_connect, args=(ray, where, errors), daemon=True)
    connecting.start()
    connecting.join(CONNECT_TIMEOUT)
    if connecting.is_alive():
        raise JobError(
            f"backend ray: no cluster at {where} responded within {CONNECT_TIMEOUT:.0f} s; check the address"
        )
    if errors:
        why = str(errors[0]).strip().partition("\n")[0]
        remedy = f"if the cluster requires a token, set RAY_AUTH_MODE=token, or {HOW_TO_START}"
        raise JobError(f"backend ray: cannot connect to a cluster at {where} ({why}); {remedy}") from errors[0]
    module: ModuleType = ray
    return module


def _has_token() -> bool:
    """Return True if Ray would find an authentication token, in the environment or in the user's home folder."""
    named = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    return named or (Path.home() / ".ray" / "auth_token").is_file()


def _connect(ray: Any, where: str, errors: list[Exception]) -> None:
    """Connect to the cluster at `where`; append an exception to `errors` instead of raising it."""
    try:
        ray.init(address=where, log_to_driver=False, logging_level=logging.ERROR, namespace="dml-lab")
    except Exception as error:
        errors.append(error)


def _local_cluster() -> str:
    """Return the address stored by the user's last `ray start` on this machine; raises JobError if there is none.

    The folder with the stored address is writable by every account, so a file owned by another account is refused.
    """
    path = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()) / "ray" / "ray_current_cluster"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise JobError(f"backend ray: you have no cluster running on this machine; {HOW_TO_START}") from None
    with open(descriptor, "rb") as file:
        if (owner := os.fstat(descriptor).st_uid) != os.getuid():
            raise JobError(
                f"backend ray: {path} belongs to another account (user id {owner}), which would receive your "
                "work; if you may use that cluster, give its address: ray:ADDRESS"
            )
        return file.read(1000).decode(errors="replace").strip()
