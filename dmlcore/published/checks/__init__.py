"""Recomputation of the errata.

Numbers stated in an erratum are compared with recomputed ones. The printed and the true value of a quantity, called the
two sides of an erratum, are compared with an independent computation, called the referee.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from dmlcore import losses
from dmlcore.published import errata, printed_formulas
from dmlcore.published.checks import (
    can,
    curves_of_batches,
    curves_of_losses,
    curves_of_sets,
    gurbuz_losses,
    gurbuz_tables,
    gurbuz_transport,
    karaman_losses,
    karaman_tables,
    psomas_losses,
    psomas_tables,
    zabihzadeh,
)
from dmlcore.published.checks.curve import POINTS, REFEREES, Curve
from dmlcore.published.checks.number import Check, Decision, Number, Outcome
from dmlcore.published.printed_formulas import COUNTEREXAMPLES, compare, points
from dmlcore.typing import Floats

__all__ = [
    "CURVES",
    "Coordinates",
    "Curve",
    "Decision",
    "Drawn",
    "Number",
    "checked",
    "coordinates",
    "decisions",
    "drawn",
    "numbers",
]

_CHECKS: Mapping[int, Check] = {
    **karaman_losses.CHECKS,
    **karaman_tables.CHECKS,
    **gurbuz_losses.CHECKS,
    **gurbuz_transport.CHECKS,
    **gurbuz_tables.CHECKS,
    **can.CHECKS,
    **zabihzadeh.CHECKS,
    **psomas_losses.CHECKS,
    **psomas_tables.CHECKS,
}


CURVES: Mapping[int, Curve] = {
    **curves_of_losses.CURVES,
    **curves_of_sets.CURVES,
    **curves_of_batches.CURVES,
}


@cache
def _outcomes(erratum: int) -> tuple[Outcome, ...]:
    check, curve = _CHECKS.get(erratum), CURVES.get(erratum)
    here = (curve.decision(curve.at),) if curve else ()
    return (*here, *(check() if check else ()))


def numbers(erratum: int) -> tuple[Number, ...]:
    """Return the numbers that an erratum states, with recomputed values (cached); empty for errata about wording."""
    return tuple(x for x in _outcomes(erratum) if isinstance(x, Number))


def decisions(erratum: int) -> tuple[Decision, ...]:
    """Return the printed, the true and an independently computed value of each quantity of an erratum (cached).

    The result is empty if nothing can be computed.
    """
    return tuple(x for x in _outcomes(erratum) if isinstance(x, Decision))


@dataclass(frozen=True)
class Coordinates:
    """A gradient of a counter-example: its description, and its coordinates as stated and as computed."""

    what: str
    numbers: tuple[Number, ...]


@cache
def coordinates(erratum: int) -> tuple[Coordinates, ...]:
    """Return the gradients stated in the text of an erratum, printed and true, with computed coordinates.

    The result is empty if the erratum has no counter-example.
    """
    example = COUNTEREXAMPLES.get(erratum)
    if example is None:
        return ()
    compared = compare(example, *points(example), losses.formula(example.loss).resolve(example.hyper or {}))
    return tuple(
        Coordinates(
            f"gradient on the {shown.point}, {side}",
            tuple(Number("", text, float(x)) for text, x in zip(stated, gradients[at], strict=True)),
        )
        for shown in errata.erratum(erratum).shown
        for at in [printed_formulas.POINTS.index(shown.point)]
        for side, stated, gradients in (
            ("printed", shown.printed, compared.printed),
            ("true", shown.true, compared.true),
        )
    )


def checked() -> frozenset[int]:
    """Return the numbers of the errata for which a check or a curve exists."""
    return frozenset({*_CHECKS, *CURVES})


@dataclass(frozen=True)
class Drawn:
    """Curves of a counter-example: printed and true values at `x` (n,), referee's values at `dots` (m,); NaN if
    missing.
    """

    x: Floats
    printed: Floats
    true: Floats
    dots: Floats
    referee: Floats


@cache
def drawn(erratum: int) -> Drawn:
    """Sample the printed value, the true value and the referee of an erratum over the range of its variable (cached).

    Raises:
        KeyError: If `CURVES` has no curve for the erratum.
    """
    curve = CURVES[erratum]
    x, dots = curve.places(POINTS), curve.places(REFEREES)
    sides = [curve.sides(float(place)) for place in x]
    printed = np.array([math.nan if side is None else side for side, _ in sides])
    return Drawn(
        x, printed, np.array([true for _, true in sides]), dots, np.array([curve.referee(float(d)) for d in dots])
    )
