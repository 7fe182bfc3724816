"""Minimum and maximum energy over all triplets of unit vectors, and gradient components that lie along no edge.

Three unit vectors span at most three dimensions, so the extremes on the sphere in 3-D hold for every higher dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dmlcore.geometry.sphere import central_angle, on_circle, radial, random_triplets, tangent
from dmlcore.geometry.triplet import FLOOR, Triplet, distance

Energy = Callable[[Triplet], Tensor]
Points = tuple[Tensor, Tensor, Tensor]

NODES = 25  # grid nodes per angle from 0 to pi: steps of 7.5 degrees, including both ends
STARTS = 24  # number of best grid nodes from which a pattern search starts
FINEST = 1e-11  # step size in radians at which the pattern search ends
SAMPLE = 512  # random triplets of `residuals`


@dataclass(frozen=True)
class Extreme:
    """Minimum or maximum of an energy, possibly infinite, and the angles between the points at or near which it occurs.

    `angles` holds the angles a-p, a-n and p-n in radians.
    """

    value: float
    angles: tuple[float, float, float]


def extremes(energy: Energy) -> tuple[Extreme, Extreme]:
    """Find the minimum and the maximum energy over all triplets of unit vectors in three or more dimensions.

    The energy is evaluated on a grid over the angles between the points, including the ends of their ranges. A pattern
    search then starts from the best grid nodes. It uses no gradients, because extremes tend to lie at ends of these
    ranges. The value is infinite if the energy diverges as two points approach each other.

    Args:
        energy: Energy as a function of a `Triplet`.

    Returns:
        The minimum and the maximum.
    """
    turn = torch.linspace(0, math.pi, NODES, dtype=torch.float64)
    nodes = torch.cartesian_prod(turn, turn, turn)
    points = []
    for sign in (1.0, -1.0):  # the maximum is minus the minimum of the negated energy

        def signed(t: Triplet, sign: float = sign) -> Tensor:
            return sign * energy(t)

        at, value = _search(signed, nodes)
        if _diverges(signed):
            value = -math.inf
        a, p, n = configuration(at)
        where = [float(central_angle(x, y)) for x, y in ((a, p), (a, n), (p, n))]
        points.append(Extreme(sign * value, (where[0], where[1], where[2])))
    return points[0], points[1]


def configuration(at: Tensor) -> Points:
    """Return anchors, positives and negatives on the unit sphere with the given angles between them.

    The angles (..., 3) are a-p, a-n and the dihedral angle between the planes (a, p) and (a, n).
    """
    p, n, turn = on_circle(at).unbind(-2)
    p = torch.cat([p, torch.zeros_like(p[..., :1])], dim=-1)
    n = torch.cat([n[..., :1], n[..., 1:] * turn], dim=-1)
    a = torch.zeros_like(p)
    a[..., 0] = 1
    return a, p, n


def _search(energy: Energy, nodes: Tensor) -> tuple[Tensor, float]:
    """Minimise an energy over the angles in 0..pi by pattern search from the best `STARTS` of the nodes.

    In each iteration every starting point moves to its best neighbour. If no neighbour is better, its step is halved.

    Returns:
        The minimiser and the minimum.
    """

    def f(angles: Tensor) -> Tensor:
        return energy(Triplet.of_points(*configuration(angles)))

    values, best = f(nodes).topk(STARTS, largest=False)
    at, step = nodes[best], torch.full((STARTS, 1, 1), math.pi / (NODES - 1), dtype=nodes.dtype)
    offsets = torch.cartesian_prod(*[torch.tensor([-1.0, 0.0, 1.0], dtype=nodes.dtype)] * nodes.shape[1])
    while float(step.max()) > FINEST and math.isfinite(float(values.min())):
        around = (at[:, None] + step * offsets).clamp(0, math.pi)
        least, which = f(around).min(dim=1)
        better = least < values
        at = torch.where(better[:, None], around[torch.arange(STARTS), which], at)
        values = torch.where(better, least, values)
        step = torch.where(better[:, None, None], step, step / 2)
    first = int(values.argmin())
    return at[first], float(values[first])


def _diverges(energy: Energy) -> bool:
    """Return True if the energy decreases without bound as two points approach each other.

    It diverges if it is -inf at distance 0. Some formulas replace distances below FLOOR with FLOOR. Their energy counts
    as divergent if it is constant below FLOOR and, just above FLOOR, each halving of the distance lowers it by at least
    as much as the previous one, as for a logarithm.
    """
    gaps = torch.tensor([0.0, FLOOR / 64, FLOOR / 8, 2 * FLOOR, 4 * FLOOR, 8 * FLOOR], dtype=torch.float64)
    other = torch.linspace(0, math.pi, NODES, dtype=torch.float64)
    gap, angle = torch.meshgrid(gaps, other, indexing="ij")
    for pair in (("a", "p", "n"), ("a", "n", "p"), ("p", "n", "a")):
        planar = dict(zip(pair, (torch.zeros_like(gap), gap, angle), strict=True))
        a, p, n = (on_circle(planar[k]) for k in ("a", "p", "n"))
        values = energy(Triplet.of_points(a, p, n))
        least = values.min(dim=1).values.tolist()
        if least[0] == -math.inf:
            return True
        flat = abs(least[0] - least[2]) + abs(least[1] - least[2]) < 1e-9 * max(1.0, abs(least[2]))
        steps = least[4] - least[3], least[5] - least[4]
        if flat and steps[0] > 1e-3 and steps[0] > 0.999 * steps[1]:
            return True
    return False


@dataclass(frozen=True)
class Residuals:
    """Residual gradients (along no edge) and radial gradients of an energy over random triplets of unit vectors.

    Each value is relative to the joint norm of the three gradients of a triplet. `whole` may exceed 1, because the
    residual may partly cancel the components along the edges.
    """

    whole: float  # largest norm of the residual, the gradient component that lies along no edge of the triplet
    tangential: float  # largest norm of the tangential part of the residual, which survives normalisation
    radial: float  # mean fraction of the squared gradient norm that is radial, which normalisation removes


def residuals(energy: Energy, dimension: int = 3) -> Residuals:
    """Measure the gradient components along no edge of the triplet, before and after projection onto the sphere.

    The components along the edges are computed from the derivatives of the energy with respect to the edge lengths, and
    subtracted from the gradients with respect to the points. The statistics cover `SAMPLE` random triplets of unit
    vectors, without those on which no force acts.
    """
    a, p, n = (x.requires_grad_() for x in random_triplets(SAMPLE, dimension))
    points = {"a": a, "p": p, "n": n}
    gradients = torch.autograd.grad(energy(Triplet.of_points(a, p, n)).sum(), [a, p, n])
    edges = {k: distance(points[k[0]], points[k[1]]).detach().requires_grad_() for k in ("ap", "an", "pn")}
    norms = {k: x.detach().square().sum(-1) for k, x in points.items()}
    along = torch.autograd.grad(
        energy(Triplet(edges.__getitem__, norms.__getitem__)).sum(),
        list(edges.values()),
        allow_unused=True,
        materialize_grads=True,
    )
    rest = {k: g.clone() for k, g in zip(points, gradients, strict=True)}
    for (pair, length), slope in zip(edges.items(), along, strict=True):
        x, y = (points[k].detach() for k in pair)
        pull = (slope / length.detach())[:, None] * (x - y)
        rest[pair[0]] -= pull
        rest[pair[1]] += pull
    size = torch.stack(gradients).square().sum((0, -1))  # squared norm of the three gradients of a triplet together
    on_sphere = [tangent(r, points[k].detach()) for k, r in rest.items()]
    inward = torch.stack([radial(g, x.detach()) for g, x in zip(gradients, points.values(), strict=True)])
    acts = size > 0
    shares = (
        (x / size)[acts]
        for x in (
            torch.stack(list(rest.values())).square().sum((0, -1)),
            torch.stack(on_sphere).square().sum((0, -1)),
            inward.square().sum(0),
        )
    )
    whole, tangential, along_radius = shares
    return Residuals(float(whole.max().sqrt()), float(tangential.max().sqrt()), float(along_radius.mean()))
