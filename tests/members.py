"""Tests that loop over the members of a family in one case and name the member in a failure."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest


@contextmanager
def note_member(member: object) -> Iterator[None]:
    """Add a note with the member to any exception that is raised inside the block."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"of {member}")
        raise


@contextmanager
def all_of() -> Iterator[Callable[[object], AbstractContextManager[None]]]:
    """Continue after a failing member and raise all failures at the end, because GPU time is limited to minutes."""
    failures: list[Exception] = []

    @contextmanager
    def note_this_member(member: object) -> Iterator[None]:
        try:
            with note_member(member):
                yield
        except Exception as error:
            failures.append(error)

    yield note_this_member
    if failures:
        raise ExceptionGroup(f"{len(failures)} members", failures)


def in_one_case(**families: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every combination of these arguments as one case, because separate cases cost more than the
    checks.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run_all(**fixtures: Any) -> None:
            for values in itertools.product(*families.values()):
                member = dict(zip(families, values, strict=True))
                with note_member(member):
                    test(**fixtures, **member)

        return _with_signature(run_all, test, families)

    return decorate


def in_a_case_each(variant: str, families: Mapping[str, Iterable[Any]], member: str = "name") -> Callable[..., Any]:
    """Run a test as one case per member that loops over the variants of the member."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run_all(**fixtures: Any) -> None:
            for value in families[fixtures[member]]:
                with note_member(f"{variant} {value}"):
                    test(**fixtures, **{variant: value})

        return pytest.mark.parametrize(member, families)(_with_signature(run_all, test, {variant}))

    return decorate


def _with_signature(
    run_all: Callable[..., None], test: Callable[..., None], given: Collection[str]
) -> Callable[..., None]:
    """Give `run_all` the name and the signature of `test` without the parameters in `given`."""
    signature = inspect.signature(test)
    remaining = [parameter for name, parameter in signature.parameters.items() if name not in given]
    run_all.__name__, run_all.__doc__, run_all.__module__ = test.__name__, test.__doc__, test.__module__
    run_all.__signature__ = signature.replace(parameters=remaining)  # type: ignore[attr-defined]
    return run_all
