"""Lazily computed frames of a simulation or training run; a fork shares the frames before its spec differs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Generic, Self, TypeVar

SpecT = TypeVar("SpecT")
FrameT = TypeVar("FrameT")


class History(ABC, Generic[SpecT, FrameT]):
    """Sequence of frames that a spec determines, computed and kept up to the latest one requested.

    The spec is a frozen dataclass with a field `changes`; the attribute `first` of each change is the index of the
    first frame that it affects. Not thread-safe: concurrent callers must hold `lock`.
    """

    most_steps: ClassVar[int]

    def __init__(self, spec: SpecT) -> None:
        self.spec = spec
        self.frames: list[FrameT] = []
        self.lock = threading.Lock()

    @property
    def recorded(self) -> int:
        """Index of the last computed frame; -1 if none was computed yet."""
        return len(self.frames) - 1

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Upper bound of the memory of all frames in bytes; frames shared with another history are included."""

    def frame(self, step: int) -> FrameT:
        """Return the frame at `step`, computing all missing frames up to it.

        Raises ValueError if `step` is not in 0..most_steps.
        """
        if not 0 <= step <= self.most_steps:
            raise ValueError(f"step must be in 0..{self.most_steps}, got {step}")
        while self.recorded < step:
            self.frames.append(self._next())
        return self.frames[step]

    def shared_with(self, spec: SpecT) -> int:
        """Return how many of the computed frames, counted from the first, are also valid for another spec."""
        mine: Any = self.spec
        other: Any = spec
        if replace(other, changes=()) != replace(mine, changes=()):
            return 0
        firsts: list[int] = [change.first for change in set(other.changes) ^ set(mine.changes)]
        return min([len(self.frames), *firsts])

    def forked(self, spec: SpecT) -> Self:
        """Return a history for another spec, which reuses the computed frames that are valid for both specs."""
        shared = self.shared_with(spec)
        other = self._begun(spec, shared)
        if shared:
            other.frames = self.frames[:shared]
        return other

    @abstractmethod
    def _begun(self, spec: SpecT, shared: int) -> Self:
        """Create the history for another spec; the caller copies the first `shared` frames of this one into it."""

    @abstractmethod
    def _next(self) -> FrameT:
        """Compute the frame that follows the last one."""
