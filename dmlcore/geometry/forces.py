"""Forces on the points of a triplet, defined as minus the gradient of the loss with respect to the points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import torch
from torch import Tensor

from dmlcore.geometry.triplet import Triplet, distance

Probe = Literal["anchor", "positive", "negative"]


class TripletEnergy(Protocol):
    """Protocol of a triplet loss that maps points of shapes (..., D) to energies of shape (...)."""

    m2: float

    def raw(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the energy including the margin, before the clamp, shape (...)."""
        ...

    def clamped(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the energy after the clamp to [0, m2], shape (...)."""
        ...


class EdgeEnergy(Protocol):
    """Protocol of a triplet loss that is a function of edge lengths and squared norms."""

    m2: float
    floor: float

    def raw_of(self, triplet: Triplet) -> Tensor:
        """Return the energy including the margin, before the clamp, shape (...)."""
        ...


def forces(loss: TripletEnergy, a: Tensor, p: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the forces on anchor, positive and negative, which are minus the gradient of the clamped loss.

    All three forces are zero unless the energy before the clamp satisfies 0 < raw < m2.

    Args:
        loss: Triplet loss, for example from `losses.create`.
        a: Anchors, shape (..., D).
        p: Positives, shape (..., D).
        n: Negatives, shape (..., D). The three shapes are broadcast together.

    Returns:
        The forces on anchor, positive and negative. Each has the shape of its own point (summed over broadcast
        dimensions).

    Raises:
        TypeError: If a point is not a floating-point tensor.
        ValueError: If a point is not finite.

    Example:
        >>> import torch
        >>> from dmlcore import geometry, losses
        >>> a, p, n = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.25]])
        >>> force_a, force_p, force_n = geometry.forces(losses.create("ranking", m=0.5), a, p, n)
        >>> force_a
        tensor([ 1., -1.])
        >>> (force_a + force_p + force_n).tolist()
        [0.0, 0.0]

    Reference:
        Karaman 2021, Sec. 3.1.
    """
    for name, x in (("anchor", a), ("positive", p), ("negative", n)):
        if not isinstance(x, Tensor) or not x.is_floating_point():
            kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"{name} must be a floating-point tensor, got {kind}")
    force_a, force_p, force_n = (-g for g in gradients(loss.clamped, a, p, n))
    return force_a, force_p, force_n


def gradients(energy: Callable[..., Tensor], a: Tensor, p: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of `energy(a, p, n)` with respect to a, p and n by autograd."""
    with torch.enable_grad():
        points = [x.detach().requires_grad_() for x in (a, p, n)]
        slopes = torch.autograd.grad(energy(*points).sum(), points, allow_unused=True, materialize_grads=True)
    return slopes[0], slopes[1], slopes[2]


def direction(x: Tensor, y: Tensor) -> Tensor:
    """Return the unit vectors (x - y) / |x - y|, shape (..., D), and 0 where x = y."""
    length = distance(x, y)[..., None]
    return torch.where(length > 0, (x - y) / length.where(length > 0, 1.0), 0.0)
