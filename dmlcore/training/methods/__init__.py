"""Methods: what single papers add to the training loop, one module each. `Method` in `state.py` documents the hooks."""

from __future__ import annotations

from typing import Any

from dmlcore.catalogue import discover, load_plugins
from dmlcore.spec import RunSpec, SpecError
from dmlcore.spec.sections import NO_METHOD
from dmlcore.training.methods.base import METHODS, MethodInfo, get, method
from dmlcore.training.state import Method, TrainingState

__all__ = ["METHODS", "Method", "MethodInfo", "create", "get", "method", "of", "refuse_unknown"]


def of(spec: RunSpec) -> list[MethodInfo]:
    """Return the methods that runs with this spec use, in the order in which their hooks are called."""
    return [entry for entry in METHODS.values() if entry.is_active(spec)]


def create(state: TrainingState) -> tuple[Method, ...]:
    """Create the methods that a run uses.

    Raises:
        SpecError: If the spec names an unknown method or hyper-parameter.
    """
    refuse_unknown(state.spec)
    chosen = state.spec.method
    hyper: dict[str, dict[str, Any]] = {chosen.name: dict(chosen.parameters)}
    return tuple(entry.made_by(state, **entry.resolve(hyper.get(entry.name, {}))) for entry in of(state.spec))


def refuse_unknown(spec: RunSpec) -> None:
    """Raise SpecError if `method.name` or one of `method.parameters` is not in the catalogue."""
    name, given = spec.method.name, spec.method.parameters
    free = [entry.name for entry in METHODS.values() if entry.switch is None]
    try:
        if name != NO_METHOD and name not in free:
            raise ValueError(f"unknown method {name!r}; known: {', '.join([NO_METHOD, *free])}")
        if name != NO_METHOD:
            METHODS[name].resolve(given)
        elif given:
            raise ValueError(f"parameters of no method: {', '.join(given)}; set method.name, too")
    except (TypeError, ValueError) as error:
        raise SpecError(f"method: {error.args[0]}") from None


discover(__name__, first=("conditioning", "neighbourhoods"))
load_plugins()  # must come last, because plug-ins import this package
