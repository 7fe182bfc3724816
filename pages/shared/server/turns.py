"""Limit on concurrent reruns: of a hundred that start together, some finish soon, instead of all of them late."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = len(os.sched_getaffinity(0)) + 1  # concurrent reruns; more would only contend for the GIL
LONGEST = 2.0  # seconds to wait; a page that reads a data set for a minute must not block the others

_turns = threading.BoundedSemaphore(AT_ONCE)


@contextmanager
def turn() -> Iterator[None]:
    """Wait until fewer than AT_ONCE reruns are running, at most LONGEST seconds, then run the body."""
    has_one = _turns.acquire(timeout=LONGEST)
    try:
        yield
    finally:
        if has_one:
            _turns.release()
