"""One test for many members of a family: what fails says of which member."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def of(member: object) -> Iterator[None]:
    """Add the member to whatever is raised within."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"of {member}")
        raise
