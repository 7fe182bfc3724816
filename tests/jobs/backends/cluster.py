"""A Ray cluster of this machine for tests: two nodes of one CPU each, bound to the loopback."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dmlcore.jobs.backends.remote import AWAY
from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import Run, RunStore

STORE = 80 * 2**20  # bytes, of each node's objects: nothing of ours lies there
SOON = {  # a node that is gone is missed after a second
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 3,
    "health_check_timeout_ms": 2000,
}


@contextmanager
def two_nodes() -> Iterator[Any]:
    """The cluster; `address` is what `--backend ray:ADDRESS` takes, `worker` the node that may be killed."""
    before, path = dict(os.environ), list(sys.path)  # Ray adds packages that it brings along, which others would see
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # read when Ray is imported: bind to the loopback alone
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_enable_metrics_collection": "0", "OMP_NUM_THREADS": "1"}
    os.environ |= {"RAY_worker_niceness": "0"}  # of 15, they would wait for all other tests
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[3])  # of the nodes
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": STORE, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False, "_system_config": SOON})
    cluster.join = lambda: setattr(cluster, "worker", cluster.add_node(**node))  # in place of one that was killed
    cluster.join()
    try:
        yield cluster
    finally:
        import ray

        ray.shutdown()
        cluster.shutdown()
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(before)


def raylet(node: Any) -> int:
    """Process id of a node's raylet, whose children its workers are."""
    return int(node.all_processes["raylet"][0].process.pid)


def parent(pid: int) -> int:
    """The parent of a process, 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def lose_node_with_part_of(run: Run, cluster: Any, second: int) -> bool:
    """Kill the second node while it does its share of a run that has a checkpoint; False before that."""
    if not (run.path / LAST).exists():
        return False
    workers = [int(path.name) for path in Path("/proc").glob("[0-9]*") if parent(int(path.name)) == second]
    busy = [pid for pid in workers if f"ray::{run.id}".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]
    if not busy:
        return False
    cluster.remove_node(cluster.worker, allow_graceful=False)
    for pid in busy:
        os.kill(pid, signal.SIGKILL)
    return True


def lose_node_at_work(cluster: Any, second: int, store: RunStore) -> str:
    """Kill the second node (its raylet: `second`) while it trains a run that has a checkpoint; its id, "" before that.

    Its worker is stopped before it is looked at, so that it cannot end in between.
    """
    for begun in (store.root / AWAY).glob("*/begun.json"):
        run, pid = begun.parent.name.partition(".")[0], json.loads(begun.read_text())["pid"]
        if parent(pid) != second:
            continue
        os.kill(pid, signal.SIGSTOP)
        if (begun.parent / run / LAST).exists() and not (begun.parent / "outcome.json").exists():
            cluster.remove_node(cluster.worker, allow_graceful=False)
            os.kill(pid, signal.SIGKILL)
            return run
        os.kill(pid, signal.SIGCONT)
    return ""
