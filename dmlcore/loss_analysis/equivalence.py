"""Test of two triplet losses for equality up to a factor, by comparing their gradients on random triplets.

The test compares energies before the clamp. With a clamp, two such losses deactivate the same triplets only if their
energies also agree up to the factor; `Sameness.shift` is the constant by which these energies differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from dmlcore.geometry import field_table
from dmlcore.geometry.sphere import random_triplets, tangent
from dmlcore.losses.engine.triplet_loss import TripletLoss

Space = Literal["plane", "sphere"]
Points = tuple[Tensor, Tensor, Tensor]

TRIPLETS = 256  # number of random triplets
SAME = 1e-9  # largest relative difference that is attributed to rounding


@dataclass(frozen=True)
class Sameness:
    """Fit of grad(first) = factor * grad(second) and raw(first) = factor * raw(second) + shift.

    raw is the energy before the clamp and grad its gradient.
    """

    factor: float  # least-squares factor between the gradients of all triplets
    largest: float  # max |grad(first) - factor grad(second)| over triplets, divided by max |grad(first)|
    cosine: float  # cosine similarity of the gradients of all triplets, joined to one vector
    # constant difference between the energies; None if raw(first) - factor * raw(second) is not constant
    shift: float | None
    same: bool  # True if largest <= 1e-9 and factor > 0
    verdict: str  # conclusion in words, with the fitted numbers


def same_loss(
    first: TripletLoss,
    second: TripletLoss,
    *,
    space: Space = "plane",
    dim: int | None = None,
    symmetrised: bool = False,
) -> Sameness:
    """Compare the gradients of two triplet losses, without clamp, on random triplets of points.

    Args:
        first: Triplet loss.
        second: Triplet loss.
        space: "plane" for points drawn from a standard normal distribution, or "sphere" for unit vectors with gradients
            projected onto the tangent space.
        dim: Dimension of the points; None for 2 with "plane" and 3 with "sphere".
        symmetrised: True to sum each loss over (a, p, n) and (p, a, n), as a batch does.

    Returns:
        The fitted factor and shift, the remaining deviation, and a verdict in words.

    Raises:
        ValueError: If `space` or `dim` is invalid; the message names it.

    Reference:
        Karaman 2021, Sec. 4.3.1, corrected.
    """
    points = _points(space, dim)
    raw1, grad1 = _gradients(first, points, space, symmetrised)
    raw2, grad2 = _gradients(second, points, space, symmetrised)
    # Normalise before computing products, because the squares of diverging gradients overflow before the gradients do.
    scale1, scale2 = (float(g.norm(dim=-1).max()) for g in (grad1, grad2))
    unit1, unit2 = grad1 / (scale1 or 1.0), grad2 / (scale2 or 1.0)
    dot, square1, square2 = (float((x * y).sum()) for x, y in ((unit1, unit2), (unit1, unit1), (unit2, unit2)))
    share = dot / square2 if square2 else 0.0
    factor = share * scale1 / scale2 if scale2 else 0.0
    largest = float((unit1 - share * unit2).norm(dim=-1).max())
    cosine = dot / math.sqrt(square1 * square2) if square1 and square2 else 0.0
    shift = _constant(raw1 - factor * raw2, float(raw1.abs().max()) + abs(factor) * float(raw2.abs().max()))
    sameness = Sameness(factor, largest, cosine, shift, largest <= SAME and factor > 0, "")
    return replace(sameness, verdict=_verdict(_label(first), _label(second), symmetrised, sameness))


def _points(space: str, dim: int | None) -> Points:
    if space not in ("plane", "sphere"):
        raise ValueError(f"space must be plane or sphere, got {space!r}")
    dim = dim or (2 if space == "plane" else 3)
    if dim < 2:
        raise ValueError(f"dim must be at least 2, got {dim}")
    if space == "sphere":
        return random_triplets(TRIPLETS, dim)
    a, p, n = torch.randn(3, TRIPLETS, dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return a, p, n


def _gradients(loss: TripletLoss, points: Points, space: str, symmetrised: bool) -> tuple[Tensor, Tensor]:
    """Return the energies (T,) and the gradients with respect to all three points, joined to shape (T, 3 dim)."""
    table = field_table(loss, *points, clamp=False, both_orders=symmetrised)
    gradients = [-force for force in table.forces]
    if space == "sphere":
        gradients = [tangent(g, x) for g, x in zip(gradients, points, strict=True)]
    return table.raw, torch.cat(gradients, dim=-1)


def _constant(values: Tensor, scale: float) -> float | None:
    mean = float(values.mean())
    return mean if float((values - mean).abs().max()) <= SAME * max(scale, 1.0) else None


def _label(loss: TripletLoss) -> str:
    values = (("ρ" if name == "rho" else name, loss.hyper[name]) for name in loss.formula.own)
    own = ", ".join(f"{name} = {x:.4g}" if isinstance(x, float) else f"{name} = {x}" for name, x in values)
    return f"{loss.formula.title} ({own})" if own else loss.formula.title


def _verdict(first: str, second: str, symmetrised: bool, same: Sameness) -> str:
    factor, shift = same.factor, same.shift
    if not same.same:
        near = f"{same.cosine:.4f}" if same.cosine > 0.99 else f"{same.cosine:.2f}"
        return (
            f"Not the same: even with the best scale {factor:.3g}, the gradient of {second} differs from that of "
            f"{first}. Their cosine is {near} (equal losses: 1), and they differ by up to {100 * same.largest:.0f} % "
            "of the longest gradient."
        )
    times = "equals" if abs(factor - 1) <= SAME else f"is {factor:.6g} times"
    if symmetrised:
        energies = " This holds for the sum over both orders of the pair; a hinge acts on each order by itself."
    elif shift is None:
        energies = ""
    elif abs(shift) <= SAME:
        energies = " The energies agree as well, so a hinge at 0 switches off the same triplets."
    else:
        more = f"{abs(shift / factor):.6g} {'larger' if shift > 0 else 'smaller'}"
        energies = (
            f" The energies differ by the constant {shift:.6g}: under a hinge at 0 the same triplets stay active if "
            f"the margin of {second} is {more}."
        )
    return (
        f"The same: the gradient of {first} {times} that of {second}; what remains is {same.largest:.1g} of the "
        f"largest.{energies}"
    )
