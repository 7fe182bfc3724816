"""Submission of a task to the nodes of a cluster, which work in the run store itself.

The folder `.queue/nodes/RUN` of the store belongs to the submission. Its file `lock` contains the token of the
submission, which shows a node that it sees the same store, and is locked by the node that executes the task: locks are
seen by other machines at once, whereas NFS caches the contents of directories. `meeting.json` holds the address at
which rank 0 waits for the other processes of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NODES = Path(".queue") / "nodes"
# name of the module with the function `carry_out` that a node calls; a string, since `jobs` must not import the command
# line
ON_NODE = "dmlcore.cli.on_node"


@dataclass(frozen=True)
class ProcessPlace:
    """Rank of one process among those that train a run, and network address of its node."""

    rank: int = 0
    local_rank: int = 0  # rank among the `local_size` processes that share the GPUs of this node
    local_size: int = 1
    address: str = "127.0.0.1"  # network address of this node, as seen by the other processes


ALONE = ProcessPlace()


@dataclass(frozen=True)
class Submission:
    """Request to execute a task, "train" or a job of `launch.JobName`, on a run in the shared run store."""

    store: str  # path of the run store, the same on all machines
    run: str
    task: str
    settings: str  # JSON of the job's settings
    token: str
    host: str  # name of the machine that monitors the task
    cpus: int = 1  # per process
    processes: int = 1
    data: str = ""  # $DML_DATA of the monitoring process, used by nodes that do not set this variable

    @property
    def folder(self) -> Path:
        """Folder of the submission, which is removed when the task has ended."""
        return Path(self.store) / NODES / self.run

    @property
    def lock_file(self) -> Path:
        """File that contains the token and is locked by the node that executes the task."""
        return self.folder / "lock"

    @property
    def meeting_file(self) -> Path:
        """File with the network address and port of rank 0."""
        return self.folder / "meeting.json"
