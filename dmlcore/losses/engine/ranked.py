"""Sum of a triplet energy over all triplets by sorting the negatives, without evaluating each triplet.

This works for energies E(d_ap, d_an) = A(d_ap) + S(d_ap) B(d_an) that decrease with d_an, such as the ranking, FaceNet
and ratio losses. After sorting by d_an, the active negatives of a positive pair (0 < raw < m2) have consecutive ranks,
so their sum is one difference of partial sums of B. With P positives and N negatives, an anchor costs O((N + P) log N)
instead of O(P N).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dmlcore.losses.engine.distances import weighted_gradients

Energy = Callable[[Tensor, Tensor], Tensor]  # energy as a function of d_ap and d_an, including the margin


def ranked_sum(
    energy: Energy, ap: Tensor, an: Tensor, valid: Tensor, m2: float, clamped: bool, differentiable: bool = True
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Sum a separable energy over all combinations of a positive pair with a negative of the same anchor.

    The boundaries of the active triplets are found by evaluating `energy` itself, so that the counts equal those of a
    loop over triplets in spite of rounding.

    Args:
        energy: Energy as a function of d_ap and d_an, including the margin.
        ap: Distances of positive pairs, shape (..., P, 1), a leaf of the autograd graph.
        an: Distances from anchors to negatives, shape (..., 1, N), a leaf of the autograd graph.
        valid: Mask of the positive pairs, broadcast to the shape of `ap`.
        m2: Upper end of the clamp window.
        clamped: True to sum min(m2, max(0, raw)), False to sum raw.
        differentiable: False to skip the gradients.

    Returns:
        The sum, a tensor of the counts (valid, nonzero, active), and the gradients with respect to `ap` and `an`, or ()
        if not differentiable.
    """
    near, order = an.detach().sort(dim=-1)
    size = near.shape[-1]
    valid = valid.expand(ap.shape)
    rows = near.expand(*ap.shape[:-1], size)

    def leading(holds: Callable[[Tensor], Tensor]) -> Tensor:
        """Return for each pair how many of its nearest negatives satisfy `holds`, found by bisection.

        The energy decreases with distance, so these negatives come first. Invalid pairs get 0.
        """
        low, high = torch.zeros_like(ap, dtype=torch.int64), valid * size
        for _ in range(size.bit_length()):
            middle = (low + high) // 2
            enough = (low < high) & holds(energy(ap.detach(), rows.gather(-1, middle.clamp(max=size - 1))))
            low, high = torch.where(enough, middle + 1, low), torch.where(enough, high, middle)
        return low

    nonzero = leading(lambda raw: raw > 0)
    capped = leading(lambda raw: raw >= m2) if m2 < torch.inf else torch.zeros_like(nonzero)
    counts = torch.stack([valid.sum() * size, nonzero.sum(), (nonzero - capped).sum()])
    first, last = (capped, nonzero) if clamped else (torch.zeros_like(capped), valid * size)

    # Write E = base + slope * shape with shape = B(d_an) - B(0), in double precision because partial sums are
    # subtracted.
    with torch.set_grad_enabled(differentiable):
        far = torch.maximum(ap.detach().max(), an.detach().max()).clamp(min=1.0).double()
        zero, wide = torch.zeros_like(far), ap.double()
        base = energy(wide, zero)
        slope = (energy(wide, far) - base) / (energy(zero, far) - energy(zero, zero))
        shape = energy(zero, an.double()) - energy(zero, zero)
    # Use exactly 1 for E = A(d_ap) + B(d_an) and exactly 0 for pairs without active triplets, because rounding errors
    # would otherwise leave a spurious gradient.
    weight = slope.detach().where((slope.detach() - 1).abs() > 1e-9, 1.0) * (last > first)
    sums = torch.nn.functional.pad(shape.detach().gather(-1, order).cumsum(-1), (1, 0))
    sums = sums.expand(*ap.shape[:-1], size + 1)
    within = sums.gather(-1, last) - sums.gather(-1, first)
    total = ((last - first) * base.detach() + weight * within).sum()
    if clamped and m2 < torch.inf:
        total += m2 * capped.sum().double()

    if not differentiable:
        return total, counts, ()

    # For each negative, sum the weights of the pairs for which it is active. A pair adds its weight at the start of its
    # range of ranks and subtracts it at the end.
    marks = weight.new_zeros(*an.shape[:-2], size + 1)
    marks.scatter_add_(-1, first[..., 0], weight[..., 0]).scatter_add_(-1, last[..., 0], -weight[..., 0])
    push = torch.zeros_like(shape).scatter_(-1, order, marks.cumsum(-1)[..., None, :-1])
    pull = (last - first).to(base.dtype)
    by_ap, by_an = weighted_gradients([base, slope, shape], [ap, an], [pull, within, push])
    return total, counts, (by_ap, by_an)
