"""Geometry of a triplet: edge lengths and squared norms, from points or batch tables, and the normalised margin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmlcore.typing import Floats

Edge = Callable[[str], Tensor]

# Where a force diverges and no upper clamp bounds it, distances below this value are replaced by it (docs: losses).
FLOOR = 1e-6
ENDS = ((0, 1), (0, 2), (1, 2))  # indices of the end points of the edges ap, an, pn


def distance(x: Tensor, y: Tensor) -> Tensor:
    """Compute the Euclidean distance |x - y| of points (..., D) as (...); its gradient is 0 where x = y."""
    length: Tensor = torch.linalg.vector_norm(x - y, dim=-1)
    return length


class Triplet:
    """Quantities that a triplet loss may depend on: the edge lengths d_ap, d_an, d_pn and the squared norms of a, p, n.

    Rotation-invariant losses depend on nothing else, so the same formula runs on points (`Triplet.of_points`) and on
    the distance table of a batch. All six have shapes that broadcast to (...). `floor` is the distance below which
    diverging forces are frozen; 0 lets them diverge, for use with a finite upper clamp.
    """

    def __init__(self, edge: Edge, square_norm: Edge, floor: float = 0.0) -> None:
        self._edge, self._square_norm, self.floor = edge, square_norm, floor

    @classmethod
    def of_points(cls, a: Tensor, p: Tensor, n: Tensor, floor: float = 0.0) -> Triplet:
        """Create the triplet of anchor, positive and negative of shapes (..., D), which broadcast."""
        points = {"a": a, "p": p, "n": n}
        return cls(
            lambda pair: distance(points[pair[0]], points[pair[1]]),
            lambda vertex: points[vertex].square().sum(-1),
            floor,
        )

    @cached_property
    def d_ap(self) -> Tensor:
        """Distance |a - p|."""
        return self._edge("ap")

    @cached_property
    def d_an(self) -> Tensor:
        """Distance |a - n|."""
        return self._edge("an")

    @cached_property
    def d_pn(self) -> Tensor:
        """Distance |p - n|."""
        return self._edge("pn")

    @cached_property
    def aa(self) -> Tensor:
        """Squared norm |a|^2."""
        return self._square_norm("a")

    @cached_property
    def pp(self) -> Tensor:
        """Squared norm |p|^2."""
        return self._square_norm("p")

    @cached_property
    def nn(self) -> Tensor:
        """Squared norm |n|^2."""
        return self._square_norm("n")


class Edges(NamedTuple):
    """Edge lengths and squared norms of triplets, or the derivatives by them, each of shape (...)."""

    ap: Tensor
    an: Tensor
    pn: Tensor
    aa: Tensor
    pp: Tensor
    nn: Tensor

    @classmethod
    def of(cls, a: Tensor, p: Tensor, n: Tensor) -> Edges:
        """Compute the edges of triplets of points of shapes (..., D), which broadcast."""
        edges = distance(a, p), distance(a, n), distance(p, n)
        return cls(*torch.broadcast_tensors(*edges, *(x.square().sum(-1) for x in (a, p, n))))


class Sides(NamedTuple):
    """Triplets as points (D, ...), edge vectors x - y (D, ...) and edge lengths (...), with the coordinates first.

    One row of x and one of y are several times faster than an array of pairs.
    """

    points: Sequence[Floats]
    edges: Sequence[Floats]
    lengths: Sequence[Floats]

    @classmethod
    def of(cls, points: Sequence[Floats]) -> Sides:
        """Compute the sides of three points of shapes (D, ...), which broadcast."""
        edges = [points[i] - points[j] for i, j in ENDS]
        return cls(points, edges, [np.sqrt(squared_norms(edge)) for edge in edges])

    @property
    def numbers(self) -> list[Floats]:
        """The three edge lengths and three squared norms, each of shape (...)."""
        return [*self.lengths, *map(squared_norms, self.points)]


def squared_norms(vectors: Floats) -> Floats:
    """Compute |v|^2 of vectors (D, ...) as (...)."""
    first, *others = vectors
    total: Floats = first * first
    for x in others:
        total = total + x * x
    return total


def power_potential(d: Tensor, q: float, floor: float = 0.0) -> Tensor:
    """Compute the potential P_q(d) = d^q / q (log d at q = 0) of the central force d^(q-1).

    Distances d >= 0 have any shape. At d = 0 the gradient is 0, because no direction exists there; for q <= 0 the value
    is that at max(d, floor), or -inf with floor = 0.

    Reference:
        Karaman 2021, Eq. 3.17.
    """
    logarithmic = abs(q) < 1e-9
    # Below `smallest`, q d^(q-1) may overflow, and a masked gradient would be 0 * inf = NaN.
    info = torch.finfo(d.dtype)
    smallest = max(info.eps / 10, (info.max / (16 + abs(q))) ** (1 / (q - 1)) if q < 0 else 0.0)
    floor = max(floor, smallest) if floor else 0.0
    below = d <= max(floor if q < 1e-9 else 0.0, smallest)
    inside = torch.where(below, 1.0, d)
    value = inside.log() if logarithmic else inside.pow(q) / q
    if q >= 1e-9:
        limit = 0.0
    elif floor > 0:
        limit = float(torch.tensor(floor, dtype=torch.float64).log()) if logarithmic else floor**q / q
    else:
        limit = -torch.inf
    return torch.where(below, limit, value)


def normalised_margin(m1: float, s: float, r: float, rho: float) -> float:
    """Return mu = m1 + 1/(s+1) - 2 rho/(1-r), the raw energy of the equilateral triangle with unit edges.

    mu is comparable across s and r. A term whose exponent is 0 is left out. Then raw = B_{s+1}(d_ap) - rho
    [B_{1-r}(d_an) + B_{1-r}(d_pn)] + mu with B_q(d) = (d^q - 1)/q (log d at q = 0) is continuous in s and r, also at s
    = -1 and r = 1.

    Raises:
        ValueError: If an argument is not finite.

    Reference:
        Karaman 2021, Eq. 3.17, renormalised.
    """
    return _finite(m1=m1, s=s, r=r, rho=rho)["m1"] + _unit_energy(s, r, rho)


def margin_from_normalised(mu: float, s: float, r: float, rho: float) -> float:
    """Return m1 of a normalised margin mu, the inverse of `normalised_margin`, with the same errors."""
    return _finite(mu=mu, s=s, r=r, rho=rho)["mu"] - _unit_energy(s, r, rho)


def _finite(**given: float) -> dict[str, float]:
    for name, value in given.items():
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")
    return given


def _unit_energy(s: float, r: float, rho: float) -> float:
    """Return the energy without margin of the equilateral triangle with unit edges, where logarithms are 0."""
    return sum(factor / q for factor, q in ((1.0, s + 1), (-2 * rho, 1 - r)) if abs(q) >= 1e-9)
