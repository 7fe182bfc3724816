"""Command: conformance, which holds another library of metric learning against the formulas as they are printed."""

from __future__ import annotations

from typing import Annotated

import typer

from dmlcore.cli.options import CommandError
from dmlcore.storage.home import HOME

PAGE = HOME / "docs" / "conformance.md"


def conformance(
    library: Annotated[str, typer.Argument(metavar="LIBRARY", help="As it is installed; left out: list them")] = "",
    write: Annotated[bool, typer.Option("--write", help="Write its section of docs/conformance.md")] = False,
) -> None:
    """Compare a library and dmlcore with the printed formulas, values and gradients, and say who is as printed."""
    from dmlcore.conformance import CASES, LIBRARIES, LibraryMissing, run, table  # late: it imports torch

    if not library:
        for known in LIBRARIES.values():
            try:
                state = f"{known.version} is installed"
            except LibraryMissing:
                state = f"pip install {known.name}"
            print(f"{known.name:28} {len(known.calls):>3} cases, {state}")
        return
    if library not in LIBRARIES:
        raise CommandError(f"no calls are written for the library {library!r}; choose {' or '.join(LIBRARIES)}")
    rows = run(CASES, LIBRARIES[library])
    print(table.as_text(rows))
    if write:
        PAGE.parent.mkdir(exist_ok=True)
        table.write(PAGE, LIBRARIES[library], rows)
        print(PAGE)
