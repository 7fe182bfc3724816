"""One test for many members of a family: what fails says of which member."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest


@contextmanager
def of(member: object) -> Iterator[None]:
    """Add the member to whatever is raised within."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"of {member}")
        raise


@contextmanager
def all_of() -> Iterator[Callable[[object], AbstractContextManager[None]]]:
    """Look at every member even where one fails, as a card is lent for minutes: what failed is raised at the end."""
    failures: list[Exception] = []

    @contextmanager
    def of_member(member: object) -> Iterator[None]:
        try:
            with of(member):
                yield
        except Exception as error:
            failures.append(error)

    yield of_member
    if failures:
        raise ExceptionGroup(f"{len(failures)} members", failures)


def in_one_case(**families: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test of every combination of these arguments as one case: a case each would cost more than what it looks at."""

    def whole_of(test: Callable[..., None]) -> Callable[..., None]:
        def whole(**fixtures: Any) -> None:
            for values in itertools.product(*families.values()):
                member = dict(zip(families, values, strict=True))
                with of(member):
                    test(**fixtures, **member)

        return _asking_for(whole, test, families)

    return whole_of


def in_a_case_each(variant: str, families: Mapping[str, Iterable[Any]], member: str = "name") -> Callable[..., Any]:
    """A test of members and variants of them: a case for each member, which goes through its variants."""

    def whole_of(test: Callable[..., None]) -> Callable[..., None]:
        def whole(**fixtures: Any) -> None:
            for value in families[fixtures[member]]:
                with of(f"{variant} {value}"):
                    test(**fixtures, **{variant: value})

        return pytest.mark.parametrize(member, families)(_asking_for(whole, test, {variant}))

    return whole_of


def _asking_for(whole: Callable[..., None], test: Callable[..., None], given: Collection[str]) -> Callable[..., None]:
    """It stands for the test, and asks for what is not given."""
    signature = inspect.signature(test)
    asked = [parameter for name, parameter in signature.parameters.items() if name not in given]
    whole.__name__, whole.__doc__, whole.__module__ = test.__name__, test.__doc__, test.__module__
    whole.__signature__ = signature.replace(parameters=asked)  # type: ignore[attr-defined]
    return whole
