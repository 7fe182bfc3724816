"""Histories that Python computes step by step, kept by their spec and shared by everyone who asks for the same one."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

import anyio

Spec = TypeVar("Spec", contravariant=True)
History = TypeVar("History")

KEPT_BYTES = 128 << 20
# Computing a history keeps a core busy: leave the others to fields and pages.
TURNS = anyio.CapacityLimiter(max(1, (os.cpu_count() or 2) - 1))


class Kind(Protocol[Spec, History]):
    """What `Kept` must know of its histories."""

    def key(self, spec: Spec) -> str:
        """A text that only equal specs share."""

    def fresh(self, spec: Spec) -> History:
        """The history of a spec, at its start."""

    def fork(self, history: History, spec: Spec) -> History:
        """The history of another spec, which shares what both have in common."""

    def shared(self, history: History, spec: Spec) -> int:
        """How many steps of this history another spec has too."""

    def bytes(self, history: History) -> int:
        """An upper bound of its memory."""


class Kept(Generic[Spec, History]):
    """Histories by spec, the latest used last; the oldest go when all together exceed `most` bytes."""

    def __init__(self, kind: Kind[Spec, History], most: int = KEPT_BYTES) -> None:
        self.kind, self.most = kind, most
        self._kept: OrderedDict[str, tuple[History, threading.Lock]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, spec: Spec, draft: bool = False) -> tuple[History, threading.Lock]:
        """The history of a spec and the lock to hold while it computes; it shares the steps of the one most alike.

        A draft, a state under the moving hand, is not kept.
        """
        key = self.kind.key(spec)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                self._shrink()
                return self._kept[key]
            shares = {other: self.kind.shared(history, spec) for other, (history, _) in self._kept.items()}
            alike = max(shares, key=lambda other: shares[other], default=None)
            parent = self._kept[alike] if alike is not None and shares[alike] > 0 else None
            if alike is not None and parent is not None:
                self._kept.move_to_end(alike)
        if parent is None:
            fresh = self.kind.fresh(spec), threading.Lock()
        else:
            with parent[1]:  # it may be computing, and what it holds is copied
                fresh = self.kind.fork(parent[0], spec), threading.Lock()
        if draft:
            return fresh
        with self._lock:
            found = self._kept.setdefault(key, fresh)
            self._shrink()
            return found

    def bytes(self) -> int:
        """An upper bound of the memory of all (what two histories share counts twice)."""
        return sum(self.kind.bytes(history) for history, _ in self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)

    def _shrink(self) -> None:
        while len(self._kept) > 1 and self.bytes() > self.most:
            self._kept.popitem(last=False)
