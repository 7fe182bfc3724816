"""What keeps a loss or a gradient that is not finite from the weights."""

from __future__ import annotations

import torch
from torch import Tensor

from dmlcore.training.errors import StepError
from dmlcore.typing import Ints

_WHAT = ("loss", "gradient")


class FiniteCheck:
    """Lets no step reach the weights whose loss or gradient is not finite.

    Where waiting for the device is cheap each step is asked at once. A `deferred` check never waits: the verdict stays
    on the device as `found_inf`, which makes fused optimisers skip this update and all later ones, until `wait` asks.
    """

    def __init__(self, device: torch.device, deferred: bool) -> None:
        self.deferred = deferred
        self._first = torch.zeros((), dtype=torch.int64, device=device)  # 2 * step + (0 loss | 1 gradient); 0: none
        self._pending: dict[int, Ints] = {}

    def loss(self, value: Tensor, step: int, indices: Ints) -> None:
        """Judge the loss of `step`; raises StepError unless deferred."""
        self._judge(0, value, step, indices)

    def gradient(self, total: Tensor, step: int, indices: Ints) -> None:
        """Judge the gradient of `step` by its norm, or the sum of its entries; raises StepError unless deferred."""
        self._judge(1, total, step, indices)

    @property
    def found_inf(self) -> Tensor:
        """1.0 from the first step on that was not finite, on the device, as fused optimisers ask for it."""
        return (self._first != 0).float()

    def wait(self) -> None:
        """Wait for the verdict on all steps so far; raises StepError for the first that was not made."""
        if not self._pending:
            return
        first = int(self._first)
        if first:
            step = first // 2
            raise StepError(_sentence(first % 2), step, self._pending[step])
        self._pending.clear()

    def _judge(self, what: int, value: Tensor, step: int, indices: Ints) -> None:
        fine = torch.isfinite(value.detach())
        if not self.deferred:
            if not fine:
                raise StepError(_sentence(what), step, indices)
            return
        self._pending[step] = indices
        self._first = torch.where((self._first == 0) & ~fine, 2 * step + what, self._first)


def _sentence(what: int) -> str:
    return f"the {_WHAT[what]} is NaN or infinite"
