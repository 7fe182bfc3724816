"""Why a training run cannot start or go on."""

from __future__ import annotations

import errno

import torch

from dmlcore.spec import RunSpec
from dmlcore.typing import Ints


class TrainingError(RuntimeError):
    """A training that cannot start or go on; the message says why and what to do."""


class StepError(TrainingError):
    """A step that was not made, because something in it was not finite; `indices` are the samples of its batch."""

    def __init__(self, what: str, step: int, indices: Ints) -> None:
        super().__init__(
            f"step {step} was not made: {what}. The last checkpoint is good, and failure.json names the {len(indices)} "
            f"samples of the batch: check them, or lower the learning rate"
        )
        self.step, self.indices = step, indices.tolist()


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
