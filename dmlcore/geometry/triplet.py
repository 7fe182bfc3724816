"""Geometry of a triplet: edge lengths, squared norms, power potentials and the normalised margin."""

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

# Default lower bound of distances in diverging potentials, for losses without an upper clamp (see the documentation of
# losses).
FLOOR = 1e-6
ENDS = ((0, 1), (0, 2), (1, 2))  # indices of the end points of the edges ap, an, pn


def distance(x: Tensor, y: Tensor) -> Tensor:
    """Compute the Euclidean distances |x - y|, shape (...), between points (..., D); the gradient is 0 where x = y."""
    length: Tensor = torch.linalg.vector_norm(x - y, dim=-1)
    return length


class Triplet:
    """Edge lengths d_ap, d_an, d_pn and squared norms aa, pp, nn of triplets, each computed when first read.

    Rotation-invariant losses depend on nothing else, so the same formula runs on points (`Triplet.of_points`) and on
    the distance table of a batch. The six tensors have shapes that broadcast to (...).

    Args:
        edge: Function that returns the edge length of "ap", "an" or "pn".
        square_norm: Function that returns the squared norm of "a", "p" or "n".
        floor: Distance below which a diverging potential is constant and exerts no force. With 0 it diverges at
            distance 0, which requires a finite upper clamp.
    """

    def __init__(self, edge: Edge, square_norm: Edge, floor: float = 0.0) -> None:
        self._edge, self._square_norm, self.floor = edge, square_norm, floor

    @classmethod
    def of_points(cls, a: Tensor, p: Tensor, n: Tensor, floor: float = 0.0) -> Triplet:
        """Create a triplet from anchors, positives and negatives (..., D), whose shapes broadcast."""
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
    """Edge lengths and squared norms of triplets, or the derivatives with respect to them, each of shape (...)."""

    ap: Tensor
    an: Tensor
    pn: Tensor
    aa: Tensor
    pp: Tensor
    nn: Tensor

    @classmethod
    def of(cls, a: Tensor, p: Tensor, n: Tensor) -> Edges:
        """Compute the edge lengths and squared norms of triplets of points (..., D), broadcast together."""
        edges = distance(a, p), distance(a, n), distance(p, n)
        return cls(*torch.broadcast_tensors(*edges, *(x.square().sum(-1) for x in (a, p, n))))


class Sides(NamedTuple):
    """Points (D, ...), edge vectors x - y (D, ...) and edge lengths (...) of triplets, with the coordinate axis first.

    Separate contiguous arrays of first and second coordinates are several times faster than an array of (x, y) pairs.
    """

    points: Sequence[Floats]
    edges: Sequence[Floats]
    lengths: Sequence[Floats]

    @classmethod
    def of(cls, points: Sequence[Floats]) -> Sides:
        """Compute edge vectors and edge lengths from three points of shape (D, ...), broadcast together."""
        edges = [points[i] - points[j] for i, j in ENDS]
        return cls(points, edges, [np.sqrt(squared_norms(edge)) for edge in edges])

    @property
    def numbers(self) -> list[Floats]:
        """The three edge lengths and three squared norms, six arrays of shape (...)."""
        return [*self.lengths, *map(squared_norms, self.points)]


def squared_norms(vectors: Floats) -> Floats:
    """Compute the squared norms (...) of vectors (D, ...)."""
    first, *others = vectors
    total: Floats = first * first
    for x in others:
        total = total + x * x
    return total


def power_potential(d: Tensor, q: float, floor: float = 0.0) -> Tensor:
    """Compute the potential P_q(d) = d^q / q, or log d at q = 0, whose derivative is d^(q-1).

    At d = 0 the gradient is 0, because no direction is defined there. For q <= 0, distances below `floor` give the
    value at `floor`; with floor = 0 the value at d = 0 is -inf.

    Args:
        d: Distances >= 0 of any shape.
        q: Exponent.
        floor: Smallest distance at which the potential is evaluated if q <= 0.

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
    """Return the normalised margin mu = m1 + 1/(s+1) - 2 rho/(1-r) of the distance-sensitive loss.

    mu is the energy before the clamp of an equilateral triangle with unit edges, and is comparable across s and r. A
    term whose denominator is 0 is left out. Then raw = B_{s+1}(d_ap) - rho [B_{1-r}(d_an) + B_{1-r}(d_pn)] + mu with
    B_q(d) = (d^q - 1)/q (log d at q = 0) is continuous in s and r, also at s = -1 and r = 1.

    Raises:
        ValueError: If an argument is not finite.

    Reference:
        Karaman 2021, Eq. 3.17, renormalised.
    """
    return _finite(m1=m1, s=s, r=r, rho=rho)["m1"] + _unit_energy(s, r, rho)


def margin_from_normalised(mu: float, s: float, r: float, rho: float) -> float:
    """Return the margin m1 that has the normalised margin mu; the inverse of `normalised_margin`.

    Raises:
        ValueError: If an argument is not finite.
    """
    return _finite(mu=mu, s=s, r=r, rho=rho)["mu"] - _unit_energy(s, r, rho)


def _finite(**given: float) -> dict[str, float]:
    for name, value in given.items():
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")
    return given


def _unit_energy(s: float, r: float, rho: float) -> float:
    """Return the energy, without margin, of an equilateral triangle with unit edges; logarithmic terms are 0."""
    return sum(factor / q for factor, q in ((1.0, s + 1), (-2 * rho, 1 - r)) if abs(q) >= 1e-9)
