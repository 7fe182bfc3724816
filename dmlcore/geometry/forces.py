"""Forces on the points of a triplet by their definition: minus the gradient of the loss by the points themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import torch
from torch import Tensor

from dmlcore.geometry.triplet import Triplet, distance

Probe = Literal["anchor", "positive", "negative"]


class TripletEnergy(Protocol):
    """A triplet loss: energies of triplets of points, shapes (..., D) x3 -> (...)."""

    m2: float

    def raw(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Energy with its margin, before the clamp."""
        ...

    def clamped(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Energy after the clamp to [0, m2]."""
        ...


class EdgeEnergy(Protocol):
    """A triplet loss as a function of edge lengths and squared norms."""

    m2: float
    floor: float

    def raw_of(self, triplet: Triplet) -> Tensor:
        """Energy with its margin, before the clamp."""
        ...


def forces(loss: TripletEnergy, a: Tensor, p: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Forces on anchor, positive, negative: minus the gradient of the clamped loss.

    Outside 0 < raw < m2 all three are zero.

    Shapes: (..., D) x3, broadcast together; each force has the shape of its own point (summed over the broadcast).
    Raises: TypeError or ValueError naming the point that is no finite floating-point tensor.
    Source: Karaman 2021, Sec. 3.1.

    Example, where the anchor is pulled to the positive and pushed off the negative:
        >>> import torch
        >>> from dmlcore import geometry, losses
        >>> a, p, n = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.25]])
        >>> force_a, force_p, force_n = geometry.forces(losses.create("ranking", m=0.5), a, p, n)
        >>> force_a
        tensor([ 1., -1.])
        >>> (force_a + force_p + force_n).tolist()
        [0.0, 0.0]
    """
    for name, x in (("anchor", a), ("positive", p), ("negative", n)):
        if not isinstance(x, Tensor) or not x.is_floating_point():
            kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"{name} must be a floating-point tensor, got {kind}")
    force_a, force_p, force_n = (-g for g in gradients(loss.clamped, a, p, n))
    return force_a, force_p, force_n


def gradients(energy: Callable[..., Tensor], a: Tensor, p: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of any energy of three points by automatic differentiation; each has the shape of its own point."""
    with torch.enable_grad():
        points = [x.detach().requires_grad_() for x in (a, p, n)]
        slopes = torch.autograd.grad(energy(*points).sum(), points, allow_unused=True, materialize_grads=True)
    return slopes[0], slopes[1], slopes[2]


def direction(x: Tensor, y: Tensor) -> Tensor:
    """u_xy = (x - y) / |x - y|, shapes (..., D); 0 where x = y."""
    length = distance(x, y)[..., None]
    return torch.where(length > 0, (x - y) / length.where(length > 0, 1.0), 0.0)
