"""What torch does without torch.compile, less the imports that only its compiler needs: a second of every process."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Kind = TypeVar("Kind", bound=torch.optim.Optimizer)


def plain(kind: type[Kind]) -> type[Kind]:
    """An optimiser of torch whose methods are not wrapped for its compiler; to the bit the same, never compiled."""
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    methods["step"] = torch.no_grad()(inspect.unwrap(kind.step))
    return cast(type[Kind], type(kind.__name__, (kind,), methods))


def weighted_gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], weights: Sequence[Tensor], **options: Any
) -> tuple[Tensor, ...]:
    """The gradients by each input of the sum of weights times outputs: `torch.autograd.grad(outputs, inputs, weights)`.

    That one compares the shapes with SymPy.
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
