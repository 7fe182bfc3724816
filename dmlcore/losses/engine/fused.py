"""Sum of a triplet energy over a batch on a GPU, by a Triton kernel that is generated from the formula of the loss.

The kernel evaluates all valid triplets in tiles and stores nothing per triplet. It finds the triplets from labels that
are sorted on the device, so the host does not wait for the labels. The forward pass also computes the gradient with
respect to the embeddings. Large batches are processed in strips of the distance matrix.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dmlcore.geometry.batches import without_autocast
from dmlcore.losses.engine import gpu
from dmlcore.losses.engine.symbolic import EDGES, Untranslatable, energy_source
from dmlcore.losses.engine.table import Counts, Window

STRIP = 1 << 28  # maximum number of distances that are held at the same time: 1 GiB, and as much for their weights


@dataclass(frozen=True)
class FusedFormula:
    """Generated source code of a formula, and the numbers of a triplet that the formula reads."""

    source: str
    reads: frozenset[str]

    @property
    def norms(self) -> bool:
        """True if the formula reads squared norms."""
        return not self.reads <= frozenset(EDGES)


def translate(core: Callable[..., Tensor], own: dict[str, Any], floor: float, symmetric: bool) -> FusedFormula | None:
    """Return the generated formula, or None if the kernels do not support this formula.

    Args:
        core: Formula as a function of a `Triplet` and hyper-parameters.
        own: Hyper-parameters of the formula.
        floor: Distance below which diverging forces are frozen, see `Triplet`.
        symmetric: True if the energy of (p, a, n) equals that of (a, p, n).
    """
    return _translated(core, tuple(sorted(own.items())), floor, symmetric)


@functools.lru_cache(maxsize=256)
def _translated(
    core: Callable[..., Tensor], own: tuple[tuple[str, Any], ...], floor: float, symmetric: bool
) -> FusedFormula | None:
    try:
        formula = FusedFormula(*energy_source(core, dict(own), floor))
    except (Untranslatable, TypeError, ValueError, AttributeError, RuntimeError):
        return None
    return formula if symmetric or "pn" not in formula.reads else None


def fused_energy(
    points: Tensor, labels: Tensor, formula: FusedFormula, window: Window, other: Callable[[], tuple[Tensor, Counts]]
) -> tuple[Tensor, Counts]:
    """Return the sum of the energies of all valid triplets of a batch, and the counts of these triplets.

    Args:
        points: Embeddings, shape (B, D).
        labels: Shape (B,).
        formula: Formula returned by `translate`.
        window: Margin and clamp.
        other: Function that returns the same result without kernels. It is used for second derivatives, and with a
            warning if the kernels cannot be compiled.
    """

    def compute() -> tuple[Tensor, Counts]:
        total, tally = _FusedSum.apply(points, labels, formula, window, other)
        return total, Counts(tally)

    return gpu.run_kernel(formula.source, compute, other)


class _FusedSum(torch.autograd.Function):
    """Sum of an energy over all valid triplets; the forward pass also computes the gradient of the embeddings."""

    @staticmethod
    def forward(
        ctx: Any, points: Tensor, labels: Tensor, formula: FusedFormula, window: Window, other: Callable[..., Any]
    ) -> tuple[Tensor, Tensor]:
        total, tally, gradient = evaluate(points.detach(), labels, formula, window, ctx.needs_input_grad[0])
        ctx.save_for_backward(points, gradient)
        ctx.other = other
        ctx.mark_non_differentiable(tally)
        return total, tally

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        points, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is requested
            (gradient,) = torch.autograd.grad(ctx.other()[0], points, create_graph=True)
        return grad * gradient, None, None, None, None


def evaluate(
    points: Tensor, labels: Tensor, formula: FusedFormula, window: Window, differentiable: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the sum of the energies, the counts (3,) and, if `differentiable`, the gradient (B, D) of the sum."""
    from dmlcore import kernels

    size, device = len(points), points.device
    order, inverse, first, last = gpu.sort_by_label(labels.to(device, non_blocking=True))
    points = points[order]
    columns = points.T.contiguous()
    norms = points.square().sum(1) if formula.norms else points
    sums = torch.empty(size, dtype=torch.float64, device=device)
    counts = torch.empty(size, 3, dtype=torch.int64, device=device)
    anchors = torch.empty_like(norms) if formula.norms else norms
    gradient = torch.zeros_like(points) if differentiable else None
    by_norms = torch.zeros_like(norms) if differentiable and formula.norms else None
    centred = points - points.mean(0)  # leaves the gradient unchanged but reduces its rounding errors
    kernel = kernels.triplet_kernel(formula.source)
    guard = torch.cuda.device_of(points)
    with guard, without_autocast(device):
        for start, stop in _strips(last, size):
            rows = stop - start
            distances = gpu.distances(columns[:, start:stop], columns)
            weights = torch.empty_like(distances) if differentiable else distances
            vertices = torch.empty_like(distances) if by_norms is not None else distances
            kernel[(rows,)](
                *(distances, norms, first, last, weights, vertices, anchors, sums, counts),
                *(start, size, window.margin, window.m2),
                GRADIENT=differentiable,
                CLAMPED=window.clamped,
                READS_PN="pn" in formula.reads,
                READS_NORMS=formula.norms,
                POSITIVES=kernels.POSITIVES,
                NEGATIVES=kernels.NEGATIVES,
                num_warps=kernels.WARPS,
                enable_fp_fusion=False,
            )
            if gradient is None:
                continue
            strip = centred[start:stop]
            gradient[start:stop] += torch.addmm(weights.sum(1, keepdim=True) * strip, weights, centred, alpha=-1)
            gradient += torch.addmm(weights.sum(0)[:, None] * centred, weights.T, strip, alpha=-1)
            if by_norms is not None:
                by_norms += vertices.sum(0)
        if by_norms is not None and gradient is not None:
            gradient += (2 * (by_norms + anchors))[:, None] * points
    total = sums.sum().to(points.dtype)
    return total, counts.sum(0), None if gradient is None else gradient[inverse]


def _strips(last: Tensor, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of whole classes with at most STRIP distances; a batch that fits into one strip is not read."""
    if size * size <= STRIP:
        yield 0, size
        return
    ends = last.tolist()
    start = 0
    while start < size:
        stop = max(ends[start], min(size, start + STRIP // size))
        if stop < size and ends[stop - 1] != stop:  # leave out the last class, which is not complete
            stop = next(i for i in range(stop - 1, start, -1) if ends[i - 1] == i)
        yield start, stop
        start = stop
