"""What a spec determines, frame by frame: computed as far as it is asked for, kept, and forked where a spec differs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Generic, Self, TypeVar

SpecT = TypeVar("SpecT")
FrameT = TypeVar("FrameT")


class History(ABC, Generic[SpecT, FrameT]):
    """The frames of a spec, a frozen dataclass whose `changes` each name the `first` frame that shows them.

    Not safe for several threads: whoever asks for frames that others may ask for, too, holds `lock`.
    """

    most_steps: ClassVar[int]

    def __init__(self, spec: SpecT) -> None:
        self.spec = spec
        self.frames: list[FrameT] = []
        self.lock = threading.Lock()

    @property
    def recorded(self) -> int:
        """The last recorded step; -1 before the first."""
        return len(self.frames) - 1

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """An upper bound of its memory (what two histories share counts twice)."""

    def frame(self, step: int) -> FrameT:
        """The frame of a step in 0..most_steps, computing what is missing before it; raises ValueError."""
        if not 0 <= step <= self.most_steps:
            raise ValueError(f"step must be in 0..{self.most_steps}, got {step}")
        while self.recorded < step:
            self.frames.append(self._next())
        return self.frames[step]

    def shared_with(self, spec: SpecT) -> int:
        """How many of the recorded frames another spec has too."""
        mine: Any = self.spec
        other: Any = spec
        if replace(other, changes=()) != replace(mine, changes=()):
            return 0
        firsts: list[int] = [change.first for change in set(other.changes) ^ set(mine.changes)]
        return min([len(self.frames), *firsts])

    def forked(self, spec: SpecT) -> Self:
        """The history of another spec: it has the very frames of this one that both share."""
        shared = self.shared_with(spec)
        other = self._begun(spec, shared)
        if shared:
            other.frames = self.frames[:shared]
        return other

    @abstractmethod
    def _begun(self, spec: SpecT, shared: int) -> Self:
        """The history of another spec, which catches up with the `shared` frames that it is given."""

    @abstractmethod
    def _next(self) -> FrameT:
        """Compute the frame after the last one."""
