"""Why a training run cannot start or go on, and what keeps steps that are not finite from its weights."""

from __future__ import annotations

import errno

import torch
from torch import Tensor

from dmlcore.spec import RunSpec
from dmlcore.typing import Ints

_WHAT = ("loss", "gradient")


class TrainingError(RuntimeError):
    """A training run that cannot start or go on; the message says why and what to do."""


class StepError(TrainingError):
    """A step that was not made, because something in it was not finite; `indices` are the samples of its batch."""

    def __init__(self, what: str, step: int, indices: Ints) -> None:
        super().__init__(
            f"step {step} was not made: {what}. The last checkpoint is good, and failure.json names the {len(indices)} "
            f"samples of the batch: check them, or lower the learning rate"
        )
        self.step, self.indices = step, indices.tolist()

    @classmethod
    def not_finite(cls, what: str, step: int, indices: Ints) -> StepError:
        """Of a "loss" or a "gradient"."""
        return cls(f"the {what} is NaN or infinite", step, indices)


class DeferredFiniteCheck:
    """Lets no step reach the weights whose loss or gradient is not finite, and never waits for the device.

    The verdict stays there, as `found_inf`, until `wait` asks for it; meanwhile `guard` keeps this update and all later
    ones from the weights.
    """

    def __init__(self, device: torch.device) -> None:
        self._first = torch.zeros((), dtype=torch.int64, device=device)  # 2 * step + index in _WHAT; 0: none
        self._pending: dict[int, Ints] = {}

    def note(self, what: str, value: Tensor, step: int, indices: Ints) -> None:
        """Judge the "loss" or the norm of the "gradient" of `step`, made of these samples."""
        bad = (self._first == 0) & ~torch.isfinite(value.detach())
        self._first = torch.where(bad, 2 * step + _WHAT.index(what), self._first)
        self._pending[step] = indices

    def guard(self, optimiser: torch.optim.Optimizer) -> None:
        """Let the next update change nothing once a step was not finite, judged on the device.

        Fused kernels skip it; plain ones get a gradient of zeros.
        """
        if optimiser.param_groups[0].get("fused"):
            optimiser.found_inf = self.found_inf  # type: ignore[attr-defined]
            return
        bad = self._first != 0
        for parameter in (parameter for group in optimiser.param_groups for parameter in group["params"]):
            if parameter.grad is not None:
                parameter.grad.masked_fill_(bad, 0.0)

    @property
    def found_inf(self) -> Tensor:
        """1.0 from the first step on that was not finite, on the device, as fused optimisers ask for it."""
        return (self._first != 0).float()

    def wait(self) -> None:
        """Wait for the verdict on all steps so far; raises StepError for the first that was not made."""
        if first := int(self._first) if self._pending else 0:
            step = first // 2
            raise StepError.not_finite(_WHAT[first % 2], step, self._pending[step])
        self._pending.clear()


def advice(error: Exception, spec: RunSpec) -> str:
    """What to do about a machine that is too small; "" for other errors."""
    text = str(error)
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in text:
        batch = f"{spec.batch.classes} x {spec.batch.samples}"
        return f"memory: the batch of {batch} did not fit; lower batch.classes, batch.samples or data.image_size"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"disk full: {text}; the last checkpoint is intact: make room, then resume"
    if spec.compute.compile and type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
        return f"compute.compile: torch.compile failed ({text.partition(chr(10))[0]}); set compute.compile=false"
    return ""
