"""Validation of values from links and browser messages: clip values to their range or replace them with a default."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from dmlcore import losses
from dmlcore.catalogue import Choice

REACH = 100.0  # coordinates are clipped to +-REACH
MARGINS = 1000.0  # margins and clamps are clipped to +-MARGINS

Point = tuple[float, float]
Used = TypeVar("Used")


@dataclass(frozen=True)
class Misread:
    """Invalid value that was replaced with a default.

    `what` is the type of the value, `asked` its text and `used` the default.
    """

    what: Literal["loss", "choice", "number"]
    asked: str
    used: str
    name: str = ""  # name of the hyper-parameter, "" if unknown


_misread: ContextVar[list[Misread] | None] = ContextVar("misread", default=None)


@contextmanager
def misreading() -> Iterator[list[Misread]]:
    """Yield a list to which this module adds each value replaced with a default; clipped values are not added."""
    misread: list[Misread] = []
    token = _misread.set(misread)
    try:
        yield misread
    finally:
        _misread.reset(token)


def _replace(what: Literal["loss", "choice", "number"], asked: Any, used: Used, name: str = "") -> Used:
    """Note that `asked` is replaced with `used`, unless it is merely missing; return `used`."""
    if asked is not None and (misread := _misread.get()) is not None:
        words = ",".join(map(str, asked)) if isinstance(asked, (list, tuple)) else str(asked)
        misread.append(Misread(what, words, str(used), name))
    return used


def finite(value: Any) -> float | None:
    """Return the finite float given as a number or as a text of at most 32 characters; None for anything else."""
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
    return _replace("number", value, default) if number is None else min(max(number, low), high)


def held(asked: Any, fitting: Callable[[], float], settle: bool, *, lock: bool = False) -> float:
    """Return the colour or arrow scale that a component asks to keep, or `fitting()` if it asks for none.

    The scale in `asked` is kept during a drag. After the drag (`settle`) it is kept only if it is within a factor of
    about 1.6 of `fitting()`, or if `lock` is True. `fitting` is called only if needed.
    """
    kept = bounded(asked, 1e-12, 1e12, 0.0)
    if kept and (lock or not settle):
        return kept
    fits = fitting()
    return kept if kept and 0.6 < kept / fits < 1.6 else fits


def one_of(value: Any, options: tuple[str, ...], default: str) -> str:
    """Return `value` if it is one of the options, else `default`."""
    return value if isinstance(value, str) and value in options else _replace("choice", value, default)


def flag(value: Any, default: bool) -> bool:
    """Return a boolean given as a bool or as the text "0" or "1"; `default` for anything else."""
    if isinstance(value, bool):
        return value
    return value == "1" if isinstance(value, str) and value in ("0", "1") else _replace("choice", value, default)


def numbers(value: Any, default: tuple[float, ...], reach: float = REACH) -> tuple[float, ...]:
    """Return the numbers in `value`, clipped to [-reach, reach].

    Returns `default` if `value` does not have the length of the default or contains anything but finite numbers.
    """
    listed = value if isinstance(value, (list, tuple)) and len(value) == len(default) else ()
    clipped = tuple(min(max(x, -reach), reach) for each in listed if (x := finite(each)) is not None)
    return clipped if len(clipped) == len(default) else _replace("number", value, default)


def loss_name(value: Any, default: str, known: Collection[str] | None = None) -> str:
    """Return `value` if it names a loss in `known`, by default the losses with a force field; else `default`."""
    fits = isinstance(value, str) and value in (known or losses.names())
    return str(value) if fits else _replace("loss", value, default)


def hyper(name: str, given: Any) -> dict[str, float | str]:
    """Return valid values for all hyper-parameters of the loss `name`: clipped values from `given`, else defaults."""
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
            # Papers use margins far outside the slider ranges (m = 40); for exponents and ratios, values outside the
            # ranges are meaningless.
            low, high = (-MARGINS, MARGINS) if key.startswith("m") else (parameter.low, parameter.high)
            number = min(max(number, low), high)
            values[key] = number if parameter.holds(number) else parameter.low
        else:
            _replace("number", value, values[key], key)
    return values


def plain(value: float | str) -> str:
    """Return a number as text with six significant digits for a link; a name is returned unchanged."""
    return value if isinstance(value, str) else f"{value:.6g}"


def exact(value: float | str) -> str:
    """Return a value as text that parses to the same float; used by pages that verify identities to twelve digits."""
    if isinstance(value, str):
        return value
    return "inf" if value == math.inf else repr(float(value)).removesuffix(".0")


def jsonable(hyper: Mapping[str, float | str]) -> dict[str, float | str | None]:
    """Return the hyper-parameters as JSON data; infinity (no upper clamp) becomes None."""
    return {k: None if v == math.inf else v for k, v in hyper.items()}
