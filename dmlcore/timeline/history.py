"""Lazily computed frames of a spec; forks share the frames up to the step where their specs differ."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Generic, Self, TypeVar

SpecT = TypeVar("SpecT")
FrameT = TypeVar("FrameT")


class History(ABC, Generic[SpecT, FrameT]):
    """Frames determined by a spec.

    The spec is a frozen dataclass; each element of its `changes` has the index `first` of the first frame that it
    affects. Not thread-safe: concurrent callers must hold `lock`.
    """

    most_steps: ClassVar[int]

    def __init__(self, spec: SpecT) -> None:
        self.spec = spec
        self.frames: list[FrameT] = []
        self.lock = threading.Lock()

    @property
    def recorded(self) -> int:
        """Last computed step; -1 before the first."""
        return len(self.frames) - 1

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Upper bound of the memory of all frames in bytes; frames shared by two histories count twice."""

    def frame(self, step: int) -> FrameT:
        """Return the frame at a step in 0..most_steps, computing missing earlier frames.

        Raises ValueError if the step is out of range.
        """
        if not 0 <= step <= self.most_steps:
            raise ValueError(f"step must be in 0..{self.most_steps}, got {step}")
        while self.recorded < step:
            self.frames.append(self._next())
        return self.frames[step]

    def shared_with(self, spec: SpecT) -> int:
        """Return how many of the computed frames are also valid for another spec."""
        mine: Any = self.spec
        other: Any = spec
        if replace(other, changes=()) != replace(mine, changes=()):
            return 0
        firsts: list[int] = [change.first for change in set(other.changes) ^ set(mine.changes)]
        return min([len(self.frames), *firsts])

    def forked(self, spec: SpecT) -> Self:
        """Return the history of another spec, which reuses the frames that both have in common."""
        shared = self.shared_with(spec)
        other = self._begun(spec, shared)
        if shared:
            other.frames = self.frames[:shared]
        return other

    @abstractmethod
    def _begun(self, spec: SpecT, shared: int) -> Self:
        """Create the history of another spec that reuses the first `shared` frames."""

    @abstractmethod
    def _next(self) -> FrameT:
        """Compute the frame that follows the last one."""
