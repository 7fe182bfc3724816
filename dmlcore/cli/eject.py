"""Command `eject`, which writes a run as one Python file that retrains it without dmlcore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dmlcore.cli.options import CommandError, RunId, Runs, open_store


def eject(
    run: RunId,
    to: Annotated[Path | None, typer.Option(help="FILE.py [default: RUN.py]")] = None,
    runs: Runs = None,
) -> None:
    """Write one readable Python file in plain PyTorch that retrains RUN to the same bytes, without dmlcore."""
    from dmlcore.experiments import eject as ejecting  # imported late: it imports torch

    source = open_store(runs).open(run)
    try:
        print(ejecting.write(source, to or Path(f"{source.id}.py")))
    except ejecting.EjectError as error:
        raise CommandError(str(error)) from None
