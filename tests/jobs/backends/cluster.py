"""Local Ray cluster for tests: two nodes with one CPU each, bound to the loopback interface."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import list2cmdline
from threading import Event, Thread
from typing import Any
from unittest.mock import patch

from dmlcore.jobs.backends.remote import AWAY
from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import RunStore
from tests import warm
from tests.jobs.backends import no_agent, warm_worker

STORE = 80 * 2**20  # bytes of the object store of each node, which is not used
SOON = {  # a lost node is detected after a second
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 3,
    "health_check_timeout_ms": 2000,
}
AGENTS = {  # time limits of a node and of its ports
    "dashboard_agent_command": ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port"),
    "runtime_env_agent_command": ("runtime_env_agent_port",),
}


@contextmanager
def without_agents() -> Iterator[None]:
    """Start nodes without their two agents, which saves a second of processor time per node."""
    from ray._private import node, services

    start = services.start_ray_process

    def started(command: list[str], *more: Any, **how: Any) -> Any:
        told = dict(part.removeprefix("--").split("=", 1) for part in command if "=" in part)
        for agent in AGENTS.keys() & told:
            place = [told["session_dir"], told["node_id"], *AGENTS[agent]]
            instead = list2cmdline([sys.executable, "-IS", no_agent.__file__, *place])
            command = [f"--{agent}={instead}" if part.startswith(f"--{agent}=") else part for part in command]
        return start(command, *more, **how)

    with (
        patch.object(services, "start_ray_process", started),
        patch.object(node.Node, "start_api_server", lambda *_, **__: None),
    ):
        yield


@contextmanager
def two_nodes() -> Iterator[Any]:
    """Cluster with the `address` for `--backend ray:ADDRESS` and the node `worker`, which tests may kill."""
    warm.use()
    # Ray adds its bundled packages to the path, which other tests would see
    before, path = dict(os.environ), list(sys.path)
    # read when Ray is imported: bind to the loopback interface only
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_enable_metrics_collection": "0", "OMP_NUM_THREADS": "1"}
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # keep other accounts out
    os.environ |= {"RAY_worker_niceness": "0"}  # niceness 15, Ray's default, would wait for all other tests
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[3])  # of the nodes
    from ray._private.authentication_test_utils import reset_auth_token_state
    from ray.cluster_utils import Cluster

    reset_auth_token_state()  # it may have been read when Ray was imported
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    os.environ[warm_worker.NODES] = nodes = tempfile.mkdtemp(prefix="dml-")
    node: dict[str, Any] = {
        "setup_worker_path": warm_worker.__file__,
        "num_cpus": 1,
        "num_gpus": 0,
        "object_store_memory": STORE,
        "node_ip_address": "127.0.0.1",
    }
    head = node | {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True, "_system_config": SOON}
    with without_agents():
        cluster = Cluster(initialize_head=True, head_node_args=head)

    def join() -> None:
        """Add the node that may be killed, or a replacement of it."""
        with without_agents():
            cluster.worker = cluster.add_node(**node)
        for number, handler in handlers.items():  # a node's own handler ends the process
            signal.signal(number, handler)

    cluster.join = join
    join()
    try:
        yield cluster
    finally:
        import ray

        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(nodes)
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(before)
        reset_auth_token_state()


def workers(node: Any) -> list[int]:
    """Return the process IDs of the workers of a node."""
    raylet = str(node.all_processes["raylet"][0].process.pid)
    return [int(path.name) for path in Path(os.environ[warm_worker.NODES]).iterdir() if path.read_text() == raylet]


def lose_node_at_work(cluster: Any, store: RunStore) -> str:
    """Kill the second node while it trains a run with a saved checkpoint; return the run's id, or "" before that.

    The worker is stopped before each check and while its checkpoint is still being copied, so that it cannot finish in
    between; a few steps suffice.
    """
    for pid in workers(cluster.worker):
        for _ in range(200):
            if not (name := task(pid)):
                break
            os.kill(pid, signal.SIGSTOP)
            folder, run = store.root / AWAY / name, name.partition(".")[0]
            if (folder / "outcome.json").exists() or task(pid) != name:
                os.kill(pid, signal.SIGCONT)
                break
            if (store.root / run / LAST).exists():
                cluster.remove_node(cluster.worker, allow_graceful=False)
                os.kill(pid, signal.SIGKILL)
                return run
            if (folder / run / LAST).exists():
                break
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.005)
    return ""


@contextmanager
def losing_a_node(cluster: Any, store: RunStore) -> Iterator[list[str]]:
    """Lose the second node during this context; the yielded list receives the interrupted run.

    A thread polls continuously, since a run may start and end between two polls of the monitoring process.
    """
    killed: list[str] = []
    over = Event()

    def look() -> None:
        while not killed and not over.wait(0.005):
            if run := lose_node_at_work(cluster, store):
                killed.append(run)

    looking = Thread(target=look)
    looking.start()
    try:
        yield killed
    finally:
        over.set()
        looking.join()


def task(pid: int) -> str:
    """Return the name of the order folder that a Ray worker is executing, or ""."""
    try:
        title = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0 ").decode()
    except OSError:
        return ""
    kind, _, name = title.partition("::")
    return name if kind == "ray" and "." in name else ""
