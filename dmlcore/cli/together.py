"""A run on several processes: those that a command starts on this machine, or those that torchrun has started."""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager
from typing import Annotated

import typer

from dmlcore.cli.options import CommandError, stop_on_signal
from dmlcore.storage.runs import MOST_PROCESSES

log = logging.getLogger("dmlcore")
Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_PROCESSES,
        help="That train it together, each with its share of every batch [default: 1, or as before]",
    ),
]


def count(asked: int | None, before: int, most: int = MOST_PROCESSES) -> int:
    """Return how many processes are to train a run: those of torchrun, as asked, or as many as before.

    Args:
        asked: What the user named, if anything.
        before: What the state of the run says, which somebody else may have written.
        most: As many as may be started without being asked for.
    """
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started > 1 and asked not in (None, started):
        raise CommandError(f"--processes: torchrun has started {started} already; leave it out")
    if started == 1 and not asked and before > most:
        log.warning(
            "it had %d processes; this machine has room for %d: --processes %d starts more", before, most, before
        )
    return started if started > 1 else asked or min(before, most)


def company(number: int) -> AbstractContextManager[None] | None:
    """The other processes of a run, for `loop.train`; None where this one trains it alone."""
    if number == 1:
        return None
    from dmlcore.processes import local  # late: it imports torch

    return local.member() if "WORLD_SIZE" in os.environ else local.companions(["-m", "dmlcore", "follow"], number)


def lead_or_follow() -> None:
    """Under torchrun only the first process goes on from here: the others take part until the run ends, and exit."""
    if int(os.environ.get("WORLD_SIZE", 1)) > 1 and int(os.environ["RANK"]) > 0:
        follow()
        raise typer.Exit


def follow() -> None:
    """Take part in the run that the first process leads; it alone decides when to stop."""
    stop_on_signal()
    from dmlcore.processes import local
    from dmlcore.training import loop

    with local.member():
        loop.follow()
