"""Seeding of random initialisation without side effects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's CPU generator inside the context only; generators of other devices are not touched.

    `torch.manual_seed` would make the generator of each other device record the call stack, which takes a millisecond
    or more.
    """
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        yield
