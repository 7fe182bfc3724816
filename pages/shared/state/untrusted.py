"""Validation of values from links and browser messages: clip them to their range or replace them by a default."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from dmlcore import losses
from dmlcore.catalogue import Choice

REACH = 100.0  # coordinates are clipped to +-REACH
MARGINS = 1000.0  # margins and clamps are clipped to +-MARGINS

Point = tuple[float, float]


@dataclass(frozen=True)
class Misread:
    """Value that was replaced by a default: the loss, choice or number in the input, and the one used instead."""

    what: Literal["loss", "choice", "number"]
    asked: str
    used: str
    name: str = ""  # name of the parameter, if it is known


_misread: ContextVar[list[Misread] | None] = ContextVar("misread", default=None)


@contextmanager
def misreading() -> Iterator[list[Misread]]:
    """Collect the values that the functions below replace by a default; clipped values are not collected."""
    misread: list[Misread] = []
    token = _misread.set(misread)
    try:
        yield misread
    finally:
        _misread.reset(token)


def _note(what: Literal["loss", "choice", "number"], asked: Any, used: Any, name: str = "") -> None:
    if asked is not None and (misread := _misread.get()) is not None:
        words = ",".join(map(str, asked)) if isinstance(asked, (list, tuple)) else str(asked)
        misread.append(Misread(what, words, str(used), name))


def finite(value: Any) -> float | None:
    """Return a finite float from a number or a short text; None for anything else."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, str)) or len(str(value)) > 32:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def bounded(value: Any, low: float, high: float, default: float) -> float:
    """Return the number `value`, clipped to [low, high]; `default` if it is not a number."""
    number = finite(value)
    if number is None:
        _note("number", value, default)
        return default
    return min(max(number, low), high)


def held(asked: Any, fitting: Callable[[], float], settle: bool, *, lock: bool = False) -> float:
    """Return the scale that a component asks to keep, or the fitting scale if it asks for none.

    The kept scale stays during a drag. Afterwards it stays if it is within a factor of 1.6 of the fitting scale, or if
    `lock` is True. `fitting` is called only if needed.
    """
    kept = bounded(asked, 1e-12, 1e12, 0.0)
    if kept and (lock or not settle):
        return kept
    fits = fitting()
    return kept if kept and 0.6 < kept / fits < 1.6 else fits


def one_of(value: Any, options: tuple[str, ...], default: str) -> str:
    """Return `value` if it is one of the options, else `default`."""
    if isinstance(value, str) and value in options:
        return value
    _note("choice", value, default)
    return default


def flag(value: Any, default: bool) -> bool:
    """Return a boolean, also from the texts "0" and "1"; else `default`."""
    known = isinstance(value, (bool, str))
    value_read = {True: True, False: False, "1": True, "0": False}.get(value) if known else None
    if value_read is None:
        _note("choice", value, default)
        return default
    return value_read


def numbers(value: Any, default: tuple[float, ...], reach: float = REACH) -> tuple[float, ...]:
    """Return as many finite numbers as `default` has, each clipped to +-reach; else `default`."""
    listed = isinstance(value, (list, tuple)) and len(value) == len(default)
    finite_values = [finite(v) for v in value] if listed else [None]
    if None in finite_values:
        _note("number", value, default)
        return default
    return tuple(min(max(x, -reach), reach) for x in finite_values if x is not None)


def loss_name(value: Any, default: str, known: Collection[str] | None = None) -> str:
    """Return `value` if it names a loss in `known`, by default the losses with a force field; else `default`."""
    if isinstance(value, str) and value in (known or losses.names()):
        return value
    _note("loss", value, default)
    return default


def hyper(name: str, given: Any) -> dict[str, float | str]:
    """Return valid values of all hyper-parameters of the loss `name`: those in `given` if valid, else the defaults."""
    formula = losses.LOSSES[name]
    given = given if isinstance(given, Mapping) else {}
    values = dict(formula.defaults)
    for key, parameter in formula.parameters.items():
        value = given.get(key, values[key])
        if isinstance(parameter, Choice):
            values[key] = one_of(value, parameter.options, str(values[key]))
        elif parameter.optional and (value is None or value in ("inf", math.inf)):
            values[key] = math.inf
        elif (number := finite(value)) is not None:
            # Papers use margins far outside the sliders (m = 40); exponents and ratios outside them are meaningless.
            low, high = (-MARGINS, MARGINS) if key.startswith("m") else (parameter.low, parameter.high)
            number = min(max(number, low), high)
            values[key] = number if parameter.holds(number) else parameter.low
        else:
            _note("number", value, values[key], key)
    return values


def plain(value: float | str) -> str:
    """Return a number or name as text for a link, numbers with six significant digits."""
    return value if isinstance(value, str) else f"{value:.6g}"


def exact(value: float | str) -> str:
    """Return text that parses to exactly the same float, for links that must preserve identities to twelve digits."""
    if isinstance(value, str):
        return value
    return "inf" if value == math.inf else repr(float(value)).removesuffix(".0")


def jsonable(hyper: Mapping[str, float | str]) -> dict[str, float | str | None]:
    """Return hyper-parameters for JSON: infinity (an open clamp) becomes None."""
    return {k: None if v == math.inf else v for k, v in hyper.items()}
