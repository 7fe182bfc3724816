"""Catalogue of methods, and the decorator that enters one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from dmlcore.catalogue import Catalogue, Entry, declared
from dmlcore.spec import RunSpec
from dmlcore.training.state import Method, TrainingState

M = TypeVar("M", bound=Method)


@dataclass(frozen=True, kw_only=True)
class MethodInfo(Entry):
    """Catalogue entry of a method.

    Attributes:
        made_by: Class of the method. Its first argument is the training state.
        switch: Returns True if a spec uses the method, for a method with a section of its own; None for a method that
            is chosen by `method.name`.
    """

    made_by: Callable[..., Method]
    switch: Callable[[RunSpec], bool] | None

    def is_active(self, spec: RunSpec) -> bool:
        """Return True if runs with this spec use the method."""
        return self.switch(spec) if self.switch else spec.method.name == self.name


METHODS: Catalogue[MethodInfo] = Catalogue("method")


def method(
    name: str, *, title: str, source: str, switch: Callable[[RunSpec], bool] | None = None
) -> Callable[[type[M]], type[M]]:
    """Enter a subclass of `Method` into the catalogue.

    The hyper-parameters are the arguments of its constructor that are annotated with a Slider or Choice.

    Args:
        name: Value of `method.name` that chooses the method.
        title: Title on pages.
        source: Reference.
        switch: See `MethodInfo`.
    """

    def enter(made_by: type[M]) -> type[M]:
        METHODS.enter(
            name, MethodInfo(name=name, title=title, source=source, made_by=made_by, switch=switch, **declared(made_by))
        )
        return made_by

    return enter


def get(state: TrainingState, kind: type[M]) -> M:
    """Return the method of this class that is active in a training state; raise LookupError if it is not active."""
    for active in state.methods:
        if isinstance(active, kind):
            return active
    raise LookupError(f"{kind.__name__} is not active in this run")
