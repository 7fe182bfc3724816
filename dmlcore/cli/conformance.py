"""Command `conformance`, which compares other metric learning libraries with published formulas."""

from __future__ import annotations

from typing import Annotated

import typer

from dmlcore.cli.options import CommandError
from dmlcore.storage.home import HOME

PAGE = HOME / "docs" / "conformance.md"


def conformance(
    library: Annotated[str, typer.Argument(metavar="LIBRARY", help="Name of the package; omit it to list all")] = "",
    write: Annotated[bool, typer.Option("--write", help="Write the library's section of docs/conformance.md")] = False,
) -> None:
    """Compare loss values and gradients of a library and of dmlcore with the published formulas; list deviations."""
    from dmlcore.conformance import CASES, LIBRARIES, LibraryMissing, run, table  # imported late: it imports torch

    if not library:
        for known in LIBRARIES.values():
            try:
                state = f"{known.version} is installed"
            except LibraryMissing:
                state = f"pip install {known.name}"
            print(f"{known.name:28} {len(known.calls):>3} cases, {state}")
        return
    if library not in LIBRARIES:
        raise CommandError(f"the library {library!r} is not supported; choose {' or '.join(LIBRARIES)}")
    rows = run(CASES, LIBRARIES[library])
    print(table.as_text(rows))
    if write:
        PAGE.parent.mkdir(exist_ok=True)
        table.write(PAGE, LIBRARIES[library], rows)
        print(PAGE)
