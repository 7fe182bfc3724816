"""How many visitors the server can hold open: the limit of descriptors, and what each session takes of it."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import selectors


def raise_limit() -> None:
    """Let this process open as many descriptors as it may: shells allow 1,024 by custom, not for a reason of ours."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # systems whose hard limit is more than they grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class SessionLoop(asyncio.SelectorEventLoop):
    """An event loop that opens no descriptor before it runs.

    Streamlit makes one for each session, keeps it with the last 128 closed ones, and runs it only for a script that
    awaits, which none of ours does: three descriptors a session for nothing.
    """

    _ssock = _csock = None
    _started = False

    def __init__(self) -> None:
        super().__init__(selectors.PollSelector())  # has no descriptor of its own

    def run_forever(self) -> None:
        """Run until stopped."""
        if not self._started:
            self._started = True
            self._make_self_pipe()
        super().run_forever()

    def _make_self_pipe(self) -> None:
        if self._started:
            super()._make_self_pipe()  # type: ignore[misc]

    def _close_self_pipe(self) -> None:
        if self._ssock is not None:
            super()._close_self_pipe()


class SessionLoopPolicy(asyncio.DefaultEventLoopPolicy):
    """Makes such loops; the server's own is running already."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """A loop of a session."""
        return SessionLoop()
