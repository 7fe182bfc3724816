"""What is sent to a node: a folder that is a small run store, with an order and, at the end, its outcome.

Both sides only read and write files of it, so nothing of ours is pickled. `order.json` comes with it, `begun.json` says
that a node works on it, `outcome.json`, written last, that it has ended and how.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dmlcore.storage import atomic_files
from dmlcore.storage.task import LONGEST, Text

ON_NODE = "dmlcore.cli.on_node"  # whose `carry_out` a node calls: jobs knows the command line by its name alone


class Order(BaseModel):
    """What to do: a task of `launch.JobName` or "train" on the run that lies beside it."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "order.json"

    run: str
    task: str
    settings: str = ""
    cpus: int = 1
    data: str = ""  # $DML_DATA of whoever sent it, for nodes without one


class Begun(BaseModel):
    """Who does it."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "begun.json"

    host: Text
    pid: int


class NodeOutcome(BaseModel):
    """How it ended."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    FILE: ClassVar = "outcome.json"

    state: Literal["done", "failed", "cancelled"]
    message: Text = ""


M = TypeVar("M", Order, Begun, NodeOutcome)


def write(root: Path, what: Order | Begun | NodeOutcome) -> None:
    """Put it into the folder, whole."""
    atomic_files.replace_json(root / what.FILE, what.model_dump())


def read(root: Path, kind: type[M]) -> M | None:
    """What lies in the folder, or None."""
    try:
        return kind.model_validate_json(atomic_files.contents(root / kind.FILE, LONGEST))
    except (OSError, ValidationError):
        return None
