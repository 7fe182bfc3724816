"""Tables of distances between rows and columns: accurate, finite everywhere, and cheap in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dmlcore.geometry.batches import without_autocast

DISTANCES = ("euclidean", "squared", "cosine", "ball")


def distance_table(kind: str, rows: Tensor, columns: Tensor) -> Tensor:
    """Distances (B, R) of rows (B, D) and columns (R, D).

    euclidean; squared: its square; cosine: 1 - cos; ball: Euclidean between vectors pulled back into the unit ball
    (`clip_to_unit_ball`, Gurbuz 2022). Coincident points have distance 0 and no gradient.
    """
    if kind == "cosine":
        return 1 - unit(rows) @ unit(columns).mT
    if kind == "ball":
        return within_ball(clip_to_unit_ball(rows), clip_to_unit_ball(columns))
    distances = euclidean(rows, columns)
    return distances.square() if kind == "squared" else distances


def unit(x: Tensor) -> Tensor:
    """x / |x| along the last axis, also where squares would overflow or vanish; 0 stays 0."""
    largest = x.detach().abs().amax(-1, keepdim=True)
    scaled = x / torch.where(largest > 1e-12, largest, 1.0)
    unit: Tensor = scaled / torch.linalg.vector_norm(scaled, dim=-1, keepdim=True).clamp(min=0.5)
    return unit


def clip_to_unit_ball(x: Tensor) -> Tensor:
    """x / max(1, |x|) along the last axis: the projection on the unit ball."""
    inside: Tensor = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1)
    return inside


def euclidean(rows: Tensor, columns: Tensor) -> Tensor:
    """|x_i - y_j| (B, R)."""
    distances: Tensor = _Euclidean.apply(rows, columns)
    return distances


def within_ball(rows: Tensor, columns: Tensor) -> Tensor:
    """`euclidean` for vectors of length 1 at most, where the expanded square is good to 1e-6; faster."""
    distances: Tensor = _Euclidean.apply(rows, columns, True)
    return distances


def _direct(rows: Tensor, columns: Tensor) -> Tensor:
    """By differences. Those of a batch with itself from one half: on a CPU eight times faster than `torch.cdist`."""
    if rows.device.type != "cpu" or not rows.is_set_to(columns):
        return torch.cdist(rows, columns, compute_mode="donot_use_mm_for_euclid_dist")
    count = len(rows)
    first, second = torch.triu_indices(count, count, 1)
    half = rows.new_zeros(count * count)
    half[first * count + second] = torch.pdist(rows)
    half = half.view(count, count)
    return half + half.mT


class _Euclidean(torch.autograd.Function):
    """Differences forward, as the expanded square errs by 0.35 for clusters at offset 1000; matrix products backward,
    six times faster than those of `torch.cdist` for 128 x 128 x 128. All derivatives at distance 0 are 0."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor, expanded: bool = False) -> Tensor:
        if expanded:
            distances = torch.cdist(rows, columns, compute_mode="use_mm_for_euclid_dist")
        else:
            distances = _direct(rows, columns)
        ctx.save_for_backward(rows, columns, distances)
        return distances

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        rows, columns, distances = ctx.saved_tensors
        apart = distances > 0
        if torch.is_grad_enabled():  # to be differentiated again: no division by 0, whose slope is not a number
            distances = torch.where(apart, distances, 1.0)
        weight = torch.where(apart, grad / distances, 0.0)
        centre = rows.detach().mean(0)  # sums of differences do not feel it, but rounding does
        rows, columns = rows - centre, columns - centre
        to_rows = to_columns = None
        with without_autocast(rows.device):
            if ctx.needs_input_grad[0]:
                to_rows = weight.sum(1, keepdim=True) * rows - weight @ columns
            if ctx.needs_input_grad[1]:
                to_columns = weight.sum(0)[:, None] * columns - weight.mT @ rows
        return to_rows, to_columns, None


def weighted_gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], weights: Sequence[Tensor], **options: Any
) -> tuple[Tensor, ...]:
    """The gradients by each input of the sum of weights times outputs: `torch.autograd.grad(outputs, inputs, weights)`.

    That one compares the shapes with SymPy, whose import takes a part of a second.
    """
    with torch.enable_grad():
        start = _Weighted.apply(*outputs, *weights)
    return torch.autograd.grad(start, inputs, **options)


class _Weighted(torch.autograd.Function):
    """A zero whose gradient by each output is its weight."""

    @staticmethod
    def forward(ctx: Any, *outputs_and_weights: Tensor) -> Tensor:
        ctx.save_for_backward(*outputs_and_weights[len(outputs_and_weights) // 2 :])
        return outputs_and_weights[0].new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, one: Tensor) -> tuple[Tensor | None, ...]:
        return (*ctx.saved_tensors, *[None] * len(ctx.saved_tensors))


def first_derivatives_only(x: Tensor, reason: str) -> Tensor:
    """Return `x`, through which gradients pass, but raise RuntimeError with `reason` where these are differentiated."""
    same: Tensor = _FirstOnly.apply(x, reason)
    return same


class _FirstOnly(torch.autograd.Function):
    """The identity whose gradient cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, reason: str) -> Tensor:
        ctx.reason = reason
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Last.apply(grad, ctx.reason), None


class _Last(torch.autograd.Function):
    """The identity without a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, reason: str) -> Tensor:
        ctx.reason = reason
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        raise RuntimeError(ctx.reason)
