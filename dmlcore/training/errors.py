"""Errors of training runs, and a check that prevents NaN and infinity from changing the weights."""

from __future__ import annotations

import errno

import torch
from torch import Tensor

from dmlcore.spec import RunSpec
from dmlcore.typing import Ints


class TrainingError(RuntimeError):
    """Error of a training run that cannot start or continue; the message says why and what to do."""


class StepError(TrainingError):
    """Error of a step that was not made because its loss or gradient is not finite.

    The attribute `indices` holds the samples of the batch, as indices into the data set.
    """

    def __init__(self, what: str, step: int, indices: Ints) -> None:
        super().__init__(
            f"step {step} failed: {what}. The last checkpoint is valid, and failure.json lists the {len(indices)} "
            f"samples of the batch: check them, or lower the learning rate"
        )
        self.step, self.indices = step, indices.tolist()

    @classmethod
    def not_finite(cls, what: str, step: int, indices: Ints) -> StepError:
        """Create the error for a loss or gradient that is not finite; `what` is "loss" or "gradient"."""
        return cls(f"the {what} is NaN or infinite", step, indices)


class DeferredFiniteCheck:
    """Check that keeps NaN and infinity from changing the weights without waiting for the GPU.

    The result stays on the device as `found_inf` until `wait` reads it. Until then, `guard` blocks the weight updates
    of the failed step and all later steps.
    """

    def __init__(self, device: torch.device) -> None:
        # flag on the device, 1.0 once any step was not finite; fused optimisers read an attribute of this name
        self.found_inf = torch.zeros((), device=device)
        self._scale = torch.ones((), device=device)
        self._failed = torch.zeros((), device=device)  # number of steps since the first failed one, which is included
        self._pending: dict[int, tuple[Ints, Tensor]] = {}

    def note(self, loss: Tensor, gradients: list[Tensor], step: int, indices: Ints) -> None:
        """Check that loss and gradients of a step are finite; `indices` is the batch.

        One kernel reads all of them. It is the kernel of `torch.amp.GradScaler`, which also multiplies by a scale; a
        scale of 1 changes nothing.
        """
        loss = loss.detach()
        torch._amp_foreach_non_finite_check_and_unscale_([loss.float(), *gradients], self.found_inf, self._scale)
        self._failed.add_(self.found_inf)
        self._pending[step] = indices, loss

    def guard(self, optimiser: torch.optim.Optimizer) -> None:
        """Prevent the next weight update if any step so far was not finite, without a transfer from the device.

        Fused optimiser kernels skip the update; unfused ones receive gradients of zeros.
        """
        if optimiser.param_groups[0].get("fused"):
            optimiser.found_inf = self.found_inf  # type: ignore[attr-defined]
            return
        bad = self.found_inf != 0
        for parameter in (parameter for group in optimiser.param_groups for parameter in group["params"]):
            if parameter.grad is not None:
                parameter.grad.masked_fill_(bad, 0.0)

    def wait(self) -> None:
        """Wait for the checks of all steps so far; raise StepError for the first step that failed."""
        if failed := int(self._failed) if self._pending else 0:
            step = list(self._pending)[-failed]
            indices, loss = self._pending[step]
            raise StepError.not_finite("gradient" if bool(torch.isfinite(loss)) else "loss", step, indices)
        self._pending.clear()


def advice(error: Exception, spec: RunSpec) -> str:
    """Return advice if an error was caused by a limit of the machine, such as memory or disk space; otherwise ""."""
    text = str(error)
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in text:
        batch = f"{spec.batch.classes} x {spec.batch.samples}"
        return f"memory: the batch of {batch} did not fit; lower batch.classes, batch.samples or data.image_size"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"disk full: {text}; the last checkpoint is intact; free some space, then resume"
    if spec.compute.compile and type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
        return f"compute.compile: torch.compile failed ({text.partition(chr(10))[0]}); set compute.compile=false"
    return ""
