"""What a page plays over a WebSocket: a state comes in, the steps the browser lacks go out; made and kept in Python.

A request is {"id", "state", "have", "want", "show", "stride", "frames", "rest", "draft"}: the page knows steps 0..have,
wants them up to `want`, the frames of every stride-th new step and of the steps listed, and looks at step `show`; at
rest also the link of the state; a draft is a state under the moving hand. It says everything, so that a socket has no
state of its own: when it dies nothing stays behind, and any other, or the page itself, goes on from the same state.
What is computed is kept by spec, bounded in bytes, and shared: a class that opens one link computes it once; a state
that differs only later on shares the steps before.

An answer tells `id`, `have` and `first`, the first step of its frames; `ready`, the last step made; `stopped`, why it
goes no further, or "". Or only `preparing` and `failed`: what must be made before the first step, and if that failed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import anyio
import anyio.to_thread
from starlette.routing import BaseRoute

from dmlcore.timeline.history import History
from dmlcore.training.build import StepError
from dmlcore.typing import Array
from pages.shared.server.exports import Refused
from pages.shared.server.websocket import socket_route
from pages.shared.server.wire import identity, pack
from pages.shared.state.untrusted import bounded
from pages.shared.timeline.history_cache import HistoryCache

# Computing a history keeps a core busy: leave the others to fields and pages.
TURNS = anyio.CapacityLimiter(max(1, (os.cpu_count() or 2) - 1))

EXPORT_PATIENCE = 60.0  # seconds until a step of a link must be computed, waiting for other exports included
SLICE = 0.25  # seconds that an export computes before it gives its turn back
EXPORTS = anyio.CapacityLimiter(1)  # slices of exports that wait for a turn or have one, so that players wait for one

NOT_READY = "not ready yet: play the page to this step, or ask again"

StateT = TypeVar("StateT")
HistoryT = TypeVar("HistoryT", bound=History[Any, Any])


@dataclass(frozen=True)
class FrameRequest(Generic[StateT, HistoryT]):
    """What an answer is about: the page has steps 0..have, `ready` are made; frames of `steps` are sent."""

    state: StateT
    histories: list[HistoryT]
    have: int
    ready: int
    show: int
    steps: list[int]

    @property
    def frames(self) -> list[list[Any]]:
        """The frames that are sent, of each history."""
        return [[history.frames[step] for step in self.steps] for history in self.histories]


Answer = tuple[dict[str, Any], Mapping[str, Array]]


@dataclass
class Timeline(Generic[StateT, HistoryT]):
    """The service of a page: how a state is read, which histories it has, and what an answer contains.

    patience: seconds one answer computes, what is not ready then comes with the next; most_frames: in one answer.
    """

    path: str
    state_of: Callable[[Any], StateT]
    specs: Callable[[StateT], Mapping[str, Any]]  # of the histories on one clock, by name
    kept: HistoryCache[Any, HistoryT]
    contents: Callable[[FrameRequest[StateT, HistoryT]], Answer]
    rested: Callable[[StateT, int], dict[str, Any]]
    most_steps: int
    patience: float
    most_frames: int
    prepare: Callable[[StateT], dict[str, Any]] = lambda _: {}  # "preparing" and "failed", while there is no first step
    _asked: int = 0
    _ahead: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "ahead"))

    def computed(
        self,
        state: StateT,
        want: int,
        patience: float,
        draft: bool = False,
        wanted: Callable[[], bool] = lambda: True,
    ) -> tuple[list[HistoryT], int, str]:
        """The histories of a state, the last step up to `want` that all have made, and why one of them stopped, or "".

        They take turns, step by step, for `patience` seconds and as long as they are `wanted`; one step is always made.
        """
        histories = {name: self.kept.of(spec, draft) for name, spec in self.specs(state).items()}
        began, stopped = time.monotonic(), ""
        ready = min(history.recorded for history in histories.values())
        while ready < want and not stopped and (ready < 0 or time.monotonic() - began < patience) and wanted():
            for name, history in histories.items():
                with history.lock:
                    try:
                        history.frame(ready + 1)
                    except StepError as error:
                        stopped = f"{name} stops here: {str(error).partition('. The last checkpoint')[0]}"
            ready += not stopped
        return list(histories.values()), min(want, ready), stopped

    def answer(self, request: dict[str, Any], most: int | None = None) -> bytes:
        """The steps after request["have"] up to request["want"], as far as they are ready in time.

        most: frames in it; `most_frames` if None.
        """
        self._asked = now = self._asked + 1
        state = self.state_of(request.get("state"))
        header: dict[str, Any] = {"id": identity(request)}
        if preparing := self.prepare(state):
            return pack(header | preparing, {})
        have = int(bounded(request.get("have"), -1, self.most_steps, -1))
        want = int(bounded(request.get("want"), 0, self.most_steps, 0))
        show = int(bounded(request.get("show"), 0, self.most_steps, want))
        draft = request.get("draft") is True
        histories, ready, stopped = self.computed(state, want, self.patience, draft)
        steps = self._steps(request, have, ready, self.most_frames if most is None else most)
        header |= {"have": have, "first": steps[0] if steps else ready + 1, "ready": ready, "stopped": stopped}
        more, arrays = self.contents(FrameRequest(state, histories, have, ready, show, steps))
        if request.get("rest") is True:
            more |= self.rested(state, show)
        if ready < want and not stopped and not draft:  # goes on while the answer travels, until the next is asked for
            self._ahead.submit(self.computed, state, want, self.patience, wanted=lambda: self._asked == now)
        return pack(header | more, arrays)

    def _steps(self, request: Mapping[str, Any], have: int, ready: int, most: int) -> list[int]:
        """The steps whose frames are sent: every stride-th new one, and those asked for."""
        stride, named = int(bounded(request.get("stride"), 1, self.most_steps, 1)), request.get("frames")
        new = [step for step in range(have + 1, ready + 1) if step % stride == 0]
        known = [bounded(step, -1, self.most_steps, -1) for step in named[:most]] if isinstance(named, list) else []
        return sorted({int(step) for step in known if 0 <= step <= ready} | set(new[:most]))

    def step(self, query: Mapping[str, str]) -> int:
        """The step of a link."""
        return int(bounded(query.get("step"), 0, self.most_steps, 0))

    async def compute(self, state: StateT, step: int) -> None:
        """Compute the frames of a state up to a step, in slices that each take a turn of their own.

        So whoever plays waits for one slice at most, and exports take turns with each other.

        Raises:
            Refused: If the step cannot be computed in EXPORT_PATIENCE seconds.
        """
        with anyio.move_on_after(EXPORT_PATIENCE):
            while True:
                async with EXPORTS:
                    if await anyio.to_thread.run_sync(self._advance, state, step, limiter=TURNS):
                        return
        raise Refused(NOT_READY, 503)

    def _advance(self, state: StateT, step: int) -> bool:
        """Compute one slice; returns True once the step is reached, or where a history stops before it."""
        if self.prepare(state):
            raise Refused(NOT_READY, 503)
        _, ready, stopped = self.computed(state, step, SLICE)
        return ready >= step or bool(stopped)

    def made(self, state: StateT, step: int) -> tuple[list[HistoryT], int]:
        """Return the histories of a state that `compute` has brought to a step, and the last step that all have made.

        Raises:
            Refused: If they are no longer kept.
        """
        histories, ready, stopped = self.computed(state, step, SLICE)
        if ready < step and not stopped:
            raise Refused(NOT_READY, 503)
        return histories, ready

    @property
    def route(self) -> BaseRoute:
        """The WebSocket."""
        return socket_route(self.path, self.answer, heavy=lambda _: True, limiter=TURNS)
