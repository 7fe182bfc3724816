"""What is sent to a node: a folder that is a small run store, with an order and, at the end, its outcome.

Both sides only read and write files of it, so nothing of ours is pickled. `order.json` comes with it, `begun.json` says
that a node works on it, `outcome.json`, written last, that it has ended and how. Where several processes train the run
together the first one works in the folder; `meeting.json` tells the others where they find it, which write nothing but
the outcome where one of them fails, and `lost.json` says that one of them is gone, so that all begin again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dmlcore.storage import atomic_files
from dmlcore.storage.runs import MOST_PROCESSES
from dmlcore.storage.task import MAX_STATE_BYTES, Text

ON_NODE = "dmlcore.cli.on_node"  # whose `carry_out` a node calls: jobs knows the command line by its name alone


@dataclass(frozen=True)
class ProcessPlace:
    """Which of the processes that train a run a node is asked to be."""

    rank: int = 0
    local_rank: int = 0  # among those that see the same GPUs, local_size in all
    local_size: int = 1
    address: str = "127.0.0.1"  # of this node, by which the others reach it


ALONE = ProcessPlace()


class Order(BaseModel):
    """What to do: a task of `launch.JobName` or "train" on the run that lies beside it."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "order.json"

    run: str
    task: str
    settings: str = ""
    cpus: int = 1  # of each process
    processes: Annotated[int, Field(ge=1, le=MOST_PROCESSES)] = 1
    data: str = ""  # $DML_DATA of whoever sent it, for nodes without one


class Begun(BaseModel):
    """Who does it."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "begun.json"

    host: Text
    pid: int


class Meeting(BaseModel):
    """Where the first process waits for the others."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "meeting.json"

    host: Text
    port: Annotated[int, Field(ge=1, le=65535)]


class Lost(BaseModel):
    """Why the first process cannot go on, though the run could."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "lost.json"

    message: Text


class NodeOutcome(BaseModel):
    """How it ended."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "outcome.json"

    state: Literal["done", "failed", "cancelled"]
    message: Text = ""


M = TypeVar("M", Order, Begun, Meeting, Lost, NodeOutcome)


def write(root: Path, what: Order | Begun | Meeting | Lost | NodeOutcome) -> None:
    """Put it into the folder, whole."""
    atomic_files.replace_json(root / what.FILE, what.model_dump())


def read(root: Path, kind: type[M]) -> M | None:
    """What lies in the folder, or None."""
    try:
        return kind.model_validate_json(atomic_files.contents(root / kind.FILE, MAX_STATE_BYTES))
    except (OSError, ValidationError):
        return None
