"""Data-parallel processes of a run, started either by a command on this machine or by torchrun."""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager
from typing import Annotated

import typer

from dmlcore.cli.options import CommandError, stop_on_signal
from dmlcore.storage.runs import MAX_PROCESSES

log = logging.getLogger("dmlcore")
Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MAX_PROCESSES,
        help="Number of data-parallel processes [default: as recorded for the run, else 1]",
    ),
]


def count_processes(asked: int | None, before: int, most: int = MAX_PROCESSES) -> int:
    """Return the number of data-parallel processes of a run.

    Args:
        asked: Number given by the user; None if the option was omitted.
        before: Number recorded in the run's state, which may come from another user.
        most: Upper limit for the recorded number; a number given by the user may exceed it.

    Returns:
        The number of processes that torchrun has started, if any; otherwise `asked` or, if it is None, the smaller of
        `before` and `most`.

    Raises:
        CommandError: `asked` differs from the number of processes that torchrun has started.
    """
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started > 1 and asked not in (None, started):
        raise CommandError(f"--processes: torchrun has already started {started} processes; omit this option")
    if started == 1 and not asked and before > most:
        log.warning(
            "the run had %d processes; this machine allows %d; use --processes %d to start more", before, most, before
        )
    return started if started > 1 else asked or min(before, most)


def start_company(number: int) -> AbstractContextManager[None] | None:
    """Return a context for `loop.train` within which all processes of a run train together; None if `number` is 1.

    The processes are those started by torchrun, or otherwise new processes on this machine.
    """
    if number == 1:
        return None
    from dmlcore.processes import local  # imported late: it imports torch

    return (
        local.take_part() if "WORLD_SIZE" in os.environ else local.start_companions(["-m", "dmlcore", "follow"], number)
    )


def lead_or_follow() -> None:
    """On ranks other than 0 under torchrun, take part in the run until it ends, and exit; otherwise return at once."""
    if int(os.environ.get("WORLD_SIZE", 1)) > 1 and int(os.environ["RANK"]) > 0:
        follow()
        raise typer.Exit


def follow() -> None:
    """Take part in a run as a rank other than 0; rank 0 alone decides when to stop."""
    stop_on_signal()
    from dmlcore.processes import local
    from dmlcore.training import loop

    with local.take_part():
        loop.follow()
