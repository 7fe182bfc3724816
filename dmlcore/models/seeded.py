"""What is drawn of a seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch draw on the CPU what `seed` says, in here alone; generators of other devices are left as they are.

    `torch.manual_seed` would have each of these note who seeds it: a millisecond, and more the deeper the stack.
    """
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        yield
