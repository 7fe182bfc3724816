"""Messages between a monitoring process and a cluster node, stored as JSON files in a small run store.

JSON is used so that neither side unpickles data of the other. `order.json` is sent with the run, another file names the
node that executes it, and `outcome.json`, written last, holds the result. If several processes train the run, the
process of rank 0 works in the folder and publishes its address in `meeting.json`. The others write only `outcome.json`,
and only if they fail. `lost.json` reports the loss of a process, after which all processes are started again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dmlcore.storage import atomic_files
from dmlcore.storage.runs import MAX_PROCESSES
from dmlcore.storage.task import MAX_STATE_BYTES, Text

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


class Order(BaseModel):
    """Request to a node to execute a task, "train" or a job of `launch.JobName`, on the run in the same folder."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "order.json"

    run: str
    task: str
    settings: str = ""
    cpus: int = 1  # per process
    processes: Annotated[int, Field(ge=1, le=MAX_PROCESSES)] = 1
    data: str = ""  # $DML_DATA of the sender, used by nodes that do not set this variable


class Begun(BaseModel):
    """Message that an order is being executed, with the host name and process ID."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "begun.json"

    host: Text
    pid: int


class Meeting(BaseModel):
    """Network address at which rank 0 waits for the other processes of a run."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "meeting.json"

    host: Text
    port: Annotated[int, Field(ge=1, le=65535)]


class Lost(BaseModel):
    """Message that the run was interrupted because a process was lost; the run can be resumed."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "lost.json"

    message: Text


class NodeOutcome(BaseModel):
    """Result of an order, written when its execution has ended."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "outcome.json"

    state: Literal["done", "failed", "cancelled"]
    message: Text = ""


M = TypeVar("M", Order, Begun, Meeting, Lost, NodeOutcome)


def write(root: Path, what: Order | Begun | Meeting | Lost | NodeOutcome) -> None:
    """Atomically write a message into the folder of an order."""
    atomic_files.replace_json(root / what.FILE, what.model_dump())


def read(root: Path, kind: type[M]) -> M | None:
    """Return the message of type `kind` from the folder of an order, or None if it is missing or invalid."""
    try:
        return kind.model_validate_json(atomic_files.read_bytes(root / kind.FILE, MAX_STATE_BYTES))
    except (OSError, ValidationError):
        return None
