"""Concurrent generators of work in one process, which only polls tasks that execute elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from dmlcore.jobs.backends.backend import Work

POLL_INTERVAL = 0.2  # seconds between two polls


class Pause:
    """A placeholder for work that has ended once a condition holds."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition, self._given_up = condition, False

    def has_ended(self) -> bool:
        """Return True if the condition holds or the wait was cancelled."""
        return self._given_up or self._condition()

    def cancel(self) -> None:
        """Stop waiting, so that the pause counts as ended."""
        self._given_up = True


class ConcurrentWork:
    """Scheduler of at most `max_concurrent` generators, which yield work and are resumed once it has ended.

    After `stopped` returns True, nothing new is started and active work is cancelled; generators check `stopped` too.
    """

    def __init__(self, max_concurrent: int, stopped: Callable[[], bool]) -> None:
        self._max_concurrent, self._stopped, self._cancelled = max_concurrent, stopped, False
        self._under_way: list[tuple[Iterator[Work], Work]] = []

    def advance(self, courses: Iterator[Iterator[Work]]) -> bool:
        """Advance all generators as far as possible, and start further ones of `courses`; return True while any are
        active.
        """
        if self._stopped():
            self.cancel()
        for course, work in list(self._under_way):
            if work.has_ended():
                self._under_way.remove((course, work))
                self._go_on(course)
        while len(self._under_way) < self._max_concurrent and not self._stopped():
            begun = next(courses, None)
            if begun is None:
                break
            self._go_on(begun)
        return bool(self._under_way)

    def run_to_end(self, courses: Iterator[Iterator[Work]]) -> None:
        """Poll until all have ended; an exception cancels them and is raised once they have."""
        try:
            while self.advance(courses):
                time.sleep(POLL_INTERVAL)
        except BaseException:
            self.cancel()
            while self.advance(iter(())):
                time.sleep(POLL_INTERVAL)
            raise

    def cancel(self) -> None:
        """Cancel all active work."""
        if not self._cancelled:
            self._cancelled = True
            for _, work in self._under_way:
                work.cancel()

    def _go_on(self, course: Iterator[Work]) -> None:
        work = next(course, None)
        if work is not None:
            self._under_way.append((course, work))
            if self._cancelled:
                work.cancel()
