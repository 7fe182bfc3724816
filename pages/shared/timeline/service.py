"""WebSocket service for pages that play a history: computes, caches and sends its steps.

A request is {"id", "state", "have", "want", "show", "stride", "frames", "rest", "draft"}. The page has steps 0..have
and shows step `show`; it requests the steps up to `want`, with the frames of every stride-th new step and of the steps
listed in "frames". "rest" (a drag has ended) adds the URL query parameters of the state; "draft" marks a state during a
drag. Each request is complete, so the server stores nothing per socket: after a lost connection, a new socket continues
from the same state. Histories are cached by spec, limited in bytes, and shared by all users: if many users open one
URL, its history is computed once, and states that differ only from a later step on share the earlier steps.

A response has `id`, `have`, `first` (the first step with a frame), `ready` (the last computed step) and `stopped` (the
reason why the history ends, or ""). While the first step must be prepared, it has only `id`, `preparing` and `failed`.
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

# Limit on concurrent computations of histories, each of which occupies a core; one core is left for force fields and
# pages.
TURNS = anyio.CapacityLimiter(max(1, (os.cpu_count() or 2) - 1))

EXPORT_PATIENCE = 60.0  # maximum number of seconds for an export to reach a step, including waiting for other exports
SLICE = 0.25  # seconds that an export computes before another export may continue
EXPORTS = anyio.CapacityLimiter(1)  # one export slice at a time, so that a player waits for at most one slice

NOT_READY = "not ready yet: play the page to this step, or ask again"

StateT = TypeVar("StateT")
HistoryT = TypeVar("HistoryT", bound=History[Any, Any])


@dataclass(frozen=True)
class FrameRequest(Generic[StateT, HistoryT]):
    """Parsed request for frames. The page has steps 0..have, and `ready` is the last computed step.

    `steps` lists the steps whose frames are sent; the page currently shows step `show`.
    """

    state: StateT
    histories: list[HistoryT]
    have: int
    ready: int
    show: int
    steps: list[int]

    @property
    def frames(self) -> list[list[Any]]:
        """Frames of `steps` to send, one list per history."""
        return [[history.frames[step] for step in self.steps] for history in self.histories]


Answer = tuple[dict[str, Any], Mapping[str, Array]]


@dataclass
class Timeline(Generic[StateT, HistoryT]):
    """WebSocket service of one page: parses the state, computes the histories, and writes a response.

    Attributes:
        path: Route of the WebSocket.
        state_of: Function that parses an untrusted state.
        specs: Function that returns the specs of the histories, by name; all histories advance together.
        kept: Cache of histories.
        contents: Function that returns header and arrays of a response.
        rested: Function that returns additional header entries, sent once a drag has ended.
        most_steps: Largest step.
        patience: Maximum number of seconds spent computing per response; later responses continue.
        most_frames: Maximum number of frames in one response.
        prepare: Function that returns "preparing" and "failed" while the first step cannot be computed, else {}.
    """

    path: str
    state_of: Callable[[Any], StateT]
    specs: Callable[[StateT], Mapping[str, Any]]
    kept: HistoryCache[Any, HistoryT]
    contents: Callable[[FrameRequest[StateT, HistoryT]], Answer]
    rested: Callable[[StateT, int], dict[str, Any]]
    most_steps: int
    patience: float
    most_frames: int
    prepare: Callable[[StateT], dict[str, Any]] = lambda _: {}
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
        """Compute steps; return the histories of a state, the last step that all of them have, and an error.

        The returned step is at most `want`. The error is "" unless a history has stopped. The histories advance
        together, one step each in turn, for at most `patience` seconds and only while `wanted()` is True. If no step
        exists yet, step 0 is computed in any case.
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
        """Return the response to `request`; steps up to request["want"] are computed as far as time permits.

        `most` limits the number of frames; None means `most_frames`.
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
        # continue to compute in the background until the next request arrives
        if ready < want and not stopped and not draft:
            self._ahead.submit(self.computed, state, want, self.patience, wanted=lambda: self._asked == now)
        return pack(header | more, arrays)

    def _steps(self, request: Mapping[str, Any], have: int, ready: int, most: int) -> list[int]:
        """Return the steps whose frames are sent: every stride-th new step, and the steps in request["frames"]."""
        stride, named = int(bounded(request.get("stride"), 1, self.most_steps, 1)), request.get("frames")
        new = [step for step in range(have + 1, ready + 1) if step % stride == 0]
        known = [bounded(step, -1, self.most_steps, -1) for step in named[:most]] if isinstance(named, list) else []
        return sorted({int(step) for step in known if 0 <= step <= ready} | set(new[:most]))

    def step(self, query: Mapping[str, str]) -> int:
        """Return the step in URL query parameters, clipped to 0..most_steps."""
        return int(bounded(query.get("step"), 0, self.most_steps, 0))

    async def compute(self, state: StateT, step: int) -> None:
        """Compute the frames of a state up to `step`, in slices of SLICE seconds.

        Concurrent exports take turns, one slice each, so that a player waits for at most one slice.

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
        """Compute frames for at most SLICE seconds; return True once `step` is reached or a history has stopped."""
        if self.prepare(state):
            raise Refused(NOT_READY, 503)
        _, ready, stopped = self.computed(state, step, SLICE)
        return ready >= step or bool(stopped)

    def made(self, state: StateT, step: int) -> tuple[list[HistoryT], int]:
        """Return the histories that `compute` has advanced to `step`, and the last step that all of them have.

        Raises:
            Refused: If the histories are no longer cached.
        """
        histories, ready, stopped = self.computed(state, step, SLICE)
        if ready < step and not stopped:
            raise Refused(NOT_READY, 503)
        return histories, ready

    @property
    def route(self) -> BaseRoute:
        """WebSocket route of this service."""
        return socket_route(self.path, self.answer, heavy=lambda _: True, limiter=TURNS)
