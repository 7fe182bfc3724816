"""A marble on the energy surface of a triplet loss: one point of the triplet is released and follows its force."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy.integrate import RK23
from torch import Tensor

from dmlcore.geometry.field_table import PROBES, FieldTable
from dmlcore.geometry.forces import Probe
from dmlcore.geometry.loss_variant import Variant
from dmlcore.typing import Floats

Place = Sequence[float]
View = tuple[float, float, float]  # centre x, centre y, half width
Ending = Literal["floor", "ceiling", "onto", "hollow", "out", "rolling"]

MOST_EVALUATIONS = 2500  # maximum number of force evaluations, which take well under a second
LONGEST_WAY = 1 / 40  # maximum length of a step in half widths of the view, so that no step skips visible features
# relative error tolerance of the ODE solver; the absolute tolerance is a tenth of this, in half widths of the view
TOLERANCE = 1e-4
# The marble has come to rest if it moved less than STILL half widths in RESTING steps.
RESTING, STILL = 25, 1e-3
NEAR = 0.01  # a marble closer than this to another point has fallen onto it; in half widths of the view
STRONGEST = 1e6  # limit of the force, which diverges near a pole


@dataclass(frozen=True)
class Roll:
    """Path of a marble (K positions with times, energies and speeds) and the way in which it ended.

    `ending` is "floor" if the loss reached 0, "ceiling" if the marble is at the upper clamp, "onto" if it reached
    another point (`other`), "hollow" if it rests where forces balance or, at a crease of the surface, alternate, "out"
    if it left the view, and "rolling" if the limit on force evaluations ended the simulation.
    """

    times: Floats  # (K,)
    path: Floats  # (K, 2)
    energy: Floats  # (K,) energy of the loss variant, after clamping if the variant has a clamp
    speed: Floats  # (K,)
    ending: Ending
    other: Probe | None = None

    @property
    def moved(self) -> bool:
        """True if a force acted on the marble at the start."""
        return len(self.path) > 1


def roll(
    variant: Variant,
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    view: View,
    probe: Probe = "negative",
    mass: float = 0.0,
) -> Roll:
    """Release the probe and integrate m x'' + x' = F(x) with the two other points fixed; m = `mass` in units of time.

    m = 0 is gradient flow, x' = F; the energy never increases. With m > 0 the marble has momentum and friction, and E +
    m |x'|^2 / 2 never increases. Where the force is discontinuous (a clamp, a crease) the solver shortens its steps
    until the marble rests.

    Args:
        variant: Variant of a triplet loss.
        anchor: Anchor, shape (2,), float64.
        positive: Positive, shape (2,), float64.
        negative: Negative, shape (2,), float64.
        view: Centre x, centre y and half width of the view.
        probe: Point that is released.
        mass: Mass m >= 0.

    Returns:
        The path and its ending.

    Raises:
        ValueError: If the mass is negative or the half width of the view is not positive.

    Example:
        >>> import torch
        >>> from dmlcore import losses
        >>> from dmlcore.geometry.loss_variant import Variant
        >>> a, p, n = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.0, 0.25]], dtype=torch.float64)
        >>> way = roll(Variant(losses.create("ranking", m=0.3)), a, p, n, view=(0.0, 0.0, 1.5))
        >>> way.ending, way.path[-1].round(2).tolist()
        ('floor', [0.0, 0.8])

    Reference:
        Gradient flow is the limit of gradient descent for small steps; with m > 0, the equation is that limit of the
        heavy-ball method (Polyak 1964).
    """
    x0, y0, half = view
    if not mass >= 0:
        raise ValueError(f"mass must be 0 or more, got {mass}")
    if not half > 0:
        raise ValueError(f"view needs a half width above 0, got {half}")
    points = (anchor, positive, negative)

    def force(at: Floats) -> Floats:
        felt = variant.table(*points, probe=probe, at=torch.from_numpy(at.reshape(1, 2))).force[0].numpy()
        size = math.hypot(*felt)
        return felt * min(1.0, STRONGEST / size) if 0 < size < math.inf else np.zeros(2)

    def slope(_: float, state: Floats) -> Floats:
        felt = force(state[:2])
        return felt if mass == 0 else np.concatenate([state[2:], (felt - state[2:]) / mass])

    start = points[PROBES.index(probe)].numpy().astype(np.float64)
    state = start if mass == 0 else np.concatenate([start, np.zeros(2)])
    solver = RK23(slope, 0.0, state, math.inf, rtol=TOLERANCE, atol=TOLERANCE / 10 * half)
    times, states, speeds, inside = [0.0], [solver.y], [0.0], True
    if force(start).any():
        while solver.status == "running" and solver.nfev < MOST_EVALUATIONS and inside:
            speed = math.hypot(*(solver.f if mass == 0 else solver.y[2:]))
            if speed == 0 and mass == 0:
                break
            solver.max_step = LONGEST_WAY * half / speed if speed > 0 else math.inf
            solver.step()
            times, states = [*times, solver.t], [*states, solver.y]
            speeds.append(math.hypot(*(solver.f if mass == 0 else solver.y[2:])))
            inside = bool(np.abs(solver.y[:2] - (x0, y0)).max() <= half)
            if _rests(states, half):
                break
    path = np.array(states)[:, :2]
    table = variant.table(*points, probe=probe, at=torch.from_numpy(path))
    finished = solver.nfev < MOST_EVALUATIONS or _rests(states, half)
    ending, other = _ending(variant, table, path, points, probe, view, finished)
    return Roll(np.array(times), path, table.energy.numpy(), np.array(speeds), ending, other)


def _rests(states: list[Floats], half: float) -> bool:
    """Return True if the marble moved less than STILL half widths (`half`) in the last RESTING steps."""
    if len(states) <= RESTING:
        return False
    return bool(np.ptp(np.array(states[-RESTING:])[:, :2], axis=0).max() < STILL * half)


def _ending(
    variant: Variant,
    table: FieldTable,
    path: Floats,
    points: tuple[Tensor, Tensor, Tensor],
    probe: Probe,
    view: View,
    finished: bool,
) -> tuple[Ending, Probe | None]:
    end, half = path[-1], view[2]
    away = {
        name: float(np.hypot(*(end - point.numpy())))
        for name, point in zip(PROBES, points, strict=True)
        if name != probe
    }
    nearest = min(PROBES, key=lambda name: away.get(name, math.inf))
    if np.abs(end - view[:2]).max() > half:
        return "out", None
    # Tolerance in energy, because a solver step may end slightly before or beyond the clamp.
    shy, energy = 10 * TOLERANCE * max(1.0, abs(float(table.energy[0]))), float(table.energy[-1])
    if variant.clamp and energy <= shy + variant.shift:
        return "floor", None
    if away[nearest] < NEAR * half:
        return "onto", nearest
    if not bool(table.active[-1]) or energy >= variant.m2 - shy:
        return "ceiling", None
    return ("hollow" if finished else "rolling"), None
