"""Cache of histories that are computed step by step, shared by all users who request the same spec."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from dmlcore.timeline.history import History

SpecT = TypeVar("SpecT")
HistoryT = TypeVar("HistoryT", bound=History[Any, Any])

KEPT_BYTES = 128 << 20


class HistoryCache(Generic[SpecT, HistoryT]):
    """Cache of histories by spec; the least recently used ones are dropped when the total size exceeds `most` bytes."""

    def __init__(self, fresh: Callable[[SpecT], HistoryT], most: int = KEPT_BYTES) -> None:
        self.fresh, self.most = fresh, most
        self._kept: list[HistoryT] = []
        self._lock = threading.Lock()

    def of(self, spec: SpecT, draft: bool = False) -> HistoryT:
        """Return the history of `spec`, computed or empty; the caller must hold its lock while computing steps.

        A new history copies its first steps from the cached history that shares the most steps with it. Drafts (states
        during a drag) are not cached.
        """
        with self._lock:
            if kept_history := self._found(spec):
                return kept_history
            shares = [(history.shared_with(spec), place) for place, history in enumerate(self._kept)]
            shared, place = max(shares, default=(0, 0))
            parent = self._used(place) if shared else None
        if parent is None:
            history = self.fresh(spec)
        else:
            with parent.lock:  # another thread may be computing the parent's next step
                history = parent.forked(spec)
        if draft:
            return history
        with self._lock:
            if kept_history := self._found(spec):  # another thread has added this history to the cache in the meantime
                return kept_history
            self._kept.append(history)
            self._shrink()
        return history

    def bytes(self) -> int:
        """Return an upper bound of the total memory of the cached histories in bytes."""
        return sum(history.nbytes for history in self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def _found(self, spec: SpecT) -> HistoryT | None:
        for place in reversed(range(len(self._kept))):
            if self._kept[place].spec == spec:
                history = self._used(place)
                self._shrink()
                return history
        return None

    def _used(self, place: int) -> HistoryT:
        self._kept.append(self._kept.pop(place))
        return self._kept[-1]

    def _shrink(self) -> None:
        while len(self._kept) > 1 and self.bytes() > self.most:
            del self._kept[0]
