"""Local Ray cluster for tests: two nodes with one CPU each, bound to the loopback interface."""

import os
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import RunStore

STORE = 80 * 2**20  # bytes of the object store of each node, which is not used
SOON = {  # a lost node is detected after a second
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 3,
    "health_check_timeout_ms": 2000,
}


@contextmanager
def two_nodes() -> Iterator[Any]:
    """Cluster with the `address` for `--backend ray:ADDRESS` and the node `worker`, which tests may kill."""
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
    node: dict[str, Any] = {
        "num_cpus": 1,
        "num_gpus": 0,
        "object_store_memory": STORE,
        "node_ip_address": "127.0.0.1",
    }
    head = node | {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True, "_system_config": SOON}
    cluster = Cluster(initialize_head=True, head_node_args=head)

    def join() -> None:
        """Add the node that may be killed, or a replacement of it."""
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
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(before)
        reset_auth_token_state()


def workers(node: Any) -> list[int]:
    """Return the process IDs of the workers of a node."""
    raylet = node.all_processes["raylet"][0].process.pid
    return [int(pid) for path in Path(f"/proc/{raylet}/task").glob("*/children") for pid in path.read_text().split()]


def lose_node_at_work(cluster: Any, store: RunStore) -> str:
    """Kill the second node while it trains a run with a saved checkpoint; return the run's id, or "" before that.

    The worker is stopped before each check, so that it cannot finish in between; a few steps suffice.
    """
    for pid in workers(cluster.worker):
        for _ in range(200):
            if not (name := task(pid)):
                break
            os.kill(pid, signal.SIGSTOP)
            run = store.open(name.partition(".")[0])
            if task(pid) == name and run.state().state == "running" and (run.path / LAST).exists():
                cluster.remove_node(cluster.worker, allow_graceful=False)
                os.kill(pid, signal.SIGKILL)
                return run.id
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
    """Return the name of the submission that a Ray worker is executing, or ""."""
    try:
        title = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0 ").decode()
    except OSError:
        return ""
    kind, _, name = title.partition("::")
    return name if kind == "ray" and "." in name else ""
