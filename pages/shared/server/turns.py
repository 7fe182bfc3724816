"""Limit on concurrent reruns, so that of a hundred simultaneous reruns some finish early and not all finish late."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = len(os.sched_getaffinity(0)) + 1  # maximum number of concurrent reruns; more would only contend for the GIL
# maximum number of seconds that a rerun waits for a slot, so that pages that read data for a minute block nobody
LONGEST = 2.0

_turns = threading.BoundedSemaphore(AT_ONCE)


@contextmanager
def turn() -> Iterator[None]:
    """Wait for one of AT_ONCE slots, but at most LONGEST seconds; then run the block with or without a slot."""
    has_one = _turns.acquire(timeout=LONGEST)
    try:
        yield
    finally:
        if has_one:
            _turns.release()
