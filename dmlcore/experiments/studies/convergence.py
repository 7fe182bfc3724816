"""Speed of convergence, measured on validation curves."""

from __future__ import annotations

from collections.abc import Sequence

CONVERGENCE = "convergence"  # score name: steps to SHARE of the own best validation MAP@R, as a share of all steps
SHARE = 0.95
TITLE = "steps to 95 % of the own best validation MAP@R, in % of all steps"


def convergence(steps: Sequence[int], values: Sequence[float]) -> float | None:
    """Return the steps that a run needs for 95 % of its own best validation score, as a share of its last step.

    The curve is linear between validations; the result is where it first reaches 0.95 times its maximum, so it has a
    finer resolution than the distance of two validations. A run that still improves at its last validation has not
    converged, and its result is a share of the budget only.

    Args:
        steps: Steps of the validations, ascending; the last one must be positive.
        values: Score at each of these steps, in 0..1.

    Returns:
        A number in 0..1; 0 if the initial weights already score that much. None without scores above 0.
    """
    if not values or max(values) <= 0 or steps[-1] <= 0:
        return None
    target = SHARE * max(values)
    after = next(number for number, value in enumerate(values) if value >= target)
    reached = float(steps[after])
    if after:
        rise = (target - values[after - 1]) / (values[after] - values[after - 1])
        reached = steps[after - 1] + rise * (steps[after] - steps[after - 1])
    return reached / steps[-1]
