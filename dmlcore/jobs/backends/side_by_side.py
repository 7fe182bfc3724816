"""Concurrent execution of generators in one process; each yields the handle of a task and continues when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from dmlcore.jobs.backends.backend import Work

POLL_INTERVAL = 0.2  # seconds between two polls


class Pause:
    """Handle that counts as ended once a condition holds; a generator yields it to wait for the condition."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition, self._given_up = condition, False

    def has_ended(self) -> bool:
        """Return True if the condition holds or the wait was cancelled."""
        return self._given_up or self._condition()

    def cancel(self) -> None:
        """Stop waiting; the pause then counts as ended."""
        self._given_up = True


class ConcurrentWork:
    """Scheduler of at most `max_concurrent` generators, each resumed when the work that it yielded has ended.

    Once `stopped` returns True, no generator is started and active work is cancelled. Generators that are already
    active are still resumed, so they have to check `stopped` themselves.
    """

    def __init__(self, max_concurrent: int, stopped: Callable[[], bool]) -> None:
        self._max_concurrent, self._stopped, self._cancelled = max_concurrent, stopped, False
        self._under_way: list[tuple[Iterator[Work], Work]] = []

    def advance(self, courses: Iterator[Iterator[Work]]) -> bool:
        """Resume all generators whose work has ended, and start others up to the limit; does not wait.

        If `stopped` returns True, active work is cancelled and no generator is started.

        Args:
            courses: Generators that have not been started yet.

        Returns:
            True while any generator is active.
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
        """Run all generators to their end; on an exception, cancel the active work, wait for its end and re-raise."""
        try:
            while self.advance(courses):
                time.sleep(POLL_INTERVAL)
        except BaseException:
            self.cancel()
            while self.advance(iter(())):
                time.sleep(POLL_INTERVAL)
            raise

    def cancel(self) -> None:
        """Cancel all active work; further calls do nothing."""
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
