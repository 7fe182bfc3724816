"""Reruns take turns: of a hundred that begin together each is soon done, where all at once would all be late."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = len(os.sched_getaffinity(0)) + 1  # reruns; what is more only takes the interpreter from each other
LONGEST = 2.0  # seconds: a page that reads a data set for a minute must not hold up the others

_turns = threading.BoundedSemaphore(AT_ONCE)


@contextmanager
def turn() -> Iterator[None]:
    """A turn of this thread: at once where fewer than AT_ONCE have one, else in order, after LONGEST in any case."""
    has_one = _turns.acquire(timeout=LONGEST)
    try:
        yield
    finally:
        if has_one:
            _turns.release()
