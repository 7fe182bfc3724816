"""Equality test for two losses: the result, the factor of the best fit, and a script that repeats the test."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, cast

from dmlcore import losses
from dmlcore.figures.field_arrays import creation
from dmlcore.loss_analysis.equivalence import Sameness, Space, same_loss
from pages.losses.fields.compare.state import ComparisonView
from pages.shared.plane.state import POINTS
from pages.shared.server.wire import number
from pages.shared.state.panel import Panel


def judge(comparison: ComparisonView) -> dict[str, Any]:
    """Return the result of the equality test for the two compared losses, as JSON data.

    "factor" and "shift" are those of the best linear fit, "largest" and "cosine" measure its error. "usable" is True if
    the factor is between 1e-6 and 1e6, so that the scaled second loss can be drawn.
    """
    sameness = _same(comparison)
    return {
        "same": sameness.same,
        "usable": _usable(sameness.factor),
        "sentence": _sentence(sameness.verdict),
        **{k: number(getattr(sameness, k)) for k in ("factor", "largest", "cosine", "shift")},
    }


def fit(comparison: ComparisonView) -> tuple[float, float]:
    """Return factor and shift with which the second loss is drawn, so that first = factor * second + shift.

    They are those of the best fit if `comparison.fit` is set and the fit is usable, else 1 and 0.
    """
    if not comparison.fit or not _usable((sameness := _same(comparison)).factor):
        return 1.0, 0.0
    return sameness.factor, sameness.shift or 0.0 if sameness.same else 0.0


def _usable(factor: float) -> bool:
    return math.isfinite(factor) and 1e-6 < factor < 1e6


def _same(comparison: ComparisonView) -> Sameness:
    first, second = (_key(comparison.panels[k]) for k in comparison.pair)
    return _cached(first, second, cast(Space, comparison.space), comparison.orders)


Key = tuple[str, tuple[tuple[str, float | str], ...]]


def _key(panel: Panel) -> Key:
    return panel.loss, tuple(panel.hyper.items())


@lru_cache(maxsize=512)
def _cached(first: Key, second: Key, space: Space, orders: bool) -> Sameness:
    one, other = (losses.create(name, **dict(values)) for name, values in (first, second))
    return same_loss(one, other, space=space, symmetrised=orders)


def _sentence(verdict: str) -> str:
    """Return the part of the verdict after its colon as a sentence; the page shows the part before it as a title."""
    sentence = verdict.split(": ", 1)[-1]
    return sentence[:1].upper() + sentence[1:]


def snippet(comparison: ComparisonView) -> str:
    """Return a script that repeats the comparison with dmlcore: equality test, fields and difference of the losses."""
    lines = [
        "import torch",
        "",
        "from dmlcore import losses",
        "from dmlcore.geometry import forces",
        "from dmlcore.geometry.loss_variant import Variant, scan_variant",
        "from dmlcore.loss_analysis.equivalence import same_loss",
        "",
        "compared = [",
        *(f"    {creation(panel.module())}," for panel in comparison.panels),
        "]",
        f"first, second = {comparison.pair[0]}, {comparison.pair[1]}",
        f"sameness = same_loss(compared[first], compared[second], space={comparison.space!r}, "
        f"symmetrised={comparison.orders})",
        "print(sameness)",
        "",
        f"variants = [Variant(loss, clamp={comparison.clamp}, both_orders={comparison.orders}) for loss in compared]",
    ]
    factor, shift = fit(comparison)
    if (factor, shift) != (1.0, 0.0):
        shifted = ", shift=sameness.shift" if shift and not comparison.clamp else ""
        lines += [
            f"variants[second] = Variant(compared[second], clamp={comparison.clamp}, both_orders={comparison.orders}, "
            f"factor=sameness.factor{shifted})",
        ]
    x0, y0, half = comparison.view
    lines += [
        *(f"{k} = torch.tensor({list(getattr(comparison, k))}, dtype=torch.float64)" for k in POINTS),
        f"x = {x0} + {half} * torch.linspace(-1, 1, 141, dtype=torch.float64)",
        f"y = {y0} + {half} * torch.linspace(-1, 1, 141, dtype=torch.float64)",
        "points = anchor, positive, negative",
        f"fields = [scan_variant(v, *points, probe={comparison.probe!r}, x=x, y=y) for v in variants]",
        "difference = fields[first].energy - fields[second].energy",
        'print("largest difference of the energies:", difference.abs().max().item())',
        "for variant in variants:",
        '    print("forces on anchor, positive, negative:", *forces(variant, *points))',
    ]
    return "\n".join(lines) + "\n"
