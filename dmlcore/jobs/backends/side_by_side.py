"""Courses of work that go on beside each other in one process, which only looks at what is done elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from dmlcore.jobs.backends.backend import Work

LOOK = 0.2  # seconds between two looks at the work under way


class Pause:
    """No work, but what has to come before the next: over once a condition holds."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        self._condition, self._given_up = condition, False

    def over(self) -> bool:
        """Whether the condition holds, or nobody waits for it any more."""
        return self._given_up or self._condition()

    def cancel(self) -> None:
        """Do not wait any more."""
        self._given_up = True


class SideBySide:
    """Courses that each yield what they wait for and go on when that is over, so many of them at a time.

    Once stopped() nothing new begins, and what is under way is asked to end; a course looks at stopped() itself.
    """

    def __init__(self, at_once: int, stopped: Callable[[], bool]) -> None:
        self._at_once, self._stopped, self._cancelled = at_once, stopped, False
        self._under_way: list[tuple[Iterator[Work], Work]] = []

    def look(self, courses: Iterator[Iterator[Work]]) -> bool:
        """Let all go on as far as they can, and begin more of `courses` where there is room; whether any are left."""
        if self._stopped():
            self.cancel()
        for course, work in list(self._under_way):
            if work.over():
                self._under_way.remove((course, work))
                self._go_on(course)
        while len(self._under_way) < self._at_once and not self._stopped():
            begun = next(courses, None)
            if begun is None:
                break
            self._go_on(begun)
        return bool(self._under_way)

    def to_the_end(self, courses: Iterator[Iterator[Work]]) -> None:
        """Look until all are over; whatever interrupts it cancels them, and is raised once they are."""
        try:
            while self.look(courses):
                time.sleep(LOOK)
        except BaseException:
            self.cancel()
            while self.look(iter(())):
                time.sleep(LOOK)
            raise

    def cancel(self) -> None:
        """Let all that is under way end after its step."""
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
