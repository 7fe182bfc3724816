"""Values from links and browser messages: brought into range or replaced by a default, never trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dmlcore import losses
from dmlcore.params import Choice

REACH = 100.0  # coordinates beyond this are brought back
MARGINS = 1000.0  # likewise margins and clamps

Point = tuple[float, float]


def finite(value: Any) -> float | None:
    """A finite float of a number or a short text; None for anything else."""
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
    """The number `value` in [low, high]; `default` if it is none."""
    number = finite(value)
    return default if number is None else min(max(number, low), high)


def one_of(value: Any, options: tuple[str, ...], default: str) -> str:
    """`value` if it is one of the options."""
    return value if isinstance(value, str) and value in options else default


def flag(value: Any, default: bool) -> bool:
    """A boolean, also from the texts 0 and 1."""
    known = isinstance(value, (bool, str))
    return {True: True, False: False, "1": True, "0": False}.get(value, default) if known else default


def numbers(value: Any, default: tuple[float, ...], reach: float = REACH) -> tuple[float, ...]:
    """As many finite numbers as `default` has, each within +-reach; else `default`."""
    if not isinstance(value, (list, tuple)) or len(value) != len(default):
        return default
    found = [finite(v) for v in value]
    return default if None in found else tuple(min(max(x, -reach), reach) for x in found if x is not None)


def loss_name(value: Any, default: str) -> str:
    """A loss of the catalogue."""
    return value if isinstance(value, str) and value in losses.names() else default


def hyper(name: str, given: Any) -> dict[str, float | str]:
    """Every hyper-parameter of the loss `name`, valid: from `given` where it makes sense, else the default."""
    formula = losses.describe(name)
    given = given if isinstance(given, Mapping) else {}
    found = dict(formula.defaults)
    for key, parameter in formula.parameters.items():
        value = given.get(key, found[key])
        if isinstance(parameter, Choice):
            found[key] = one_of(value, parameter.options, str(found[key]))
        elif parameter.optional and (value is None or value in ("inf", math.inf)):
            found[key] = math.inf
        elif (number := finite(value)) is not None:
            # Papers use margins far outside the sliders (m = 40); exponents and ratios beyond them mean nothing.
            low, high = (-MARGINS, MARGINS) if key.startswith("m") else (parameter.low, parameter.high)
            number = min(max(number, low), high)
            found[key] = number if number > parameter.above else parameter.low
    return found


def plain(value: float | str) -> str:
    """A number or name as a link carries it."""
    return value if isinstance(value, str) else f"{value:.6g}"


def jsonable(hyper: Mapping[str, float | str]) -> dict[str, float | str | None]:
    """Hyper-parameters for JSON, which lacks infinity: an open clamp becomes None."""
    return {k: None if v == math.inf else v for k, v in hyper.items()}
