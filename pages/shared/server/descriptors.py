"""File descriptors of the server: raise their limit, and use fewer per session, so that more visitors can be served."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import selectors


def raise_limit() -> None:
    """Raise the soft limit of open file descriptors to the hard limit; shells usually set a soft limit of 1,024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems report a hard limit above the one they grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class SessionLoop(asyncio.SelectorEventLoop):
    """Event loop that opens no file descriptor until it runs.

    Streamlit creates one loop per session, keeps it for open sessions and the last 128 closed ones, and runs it only
    for a script that awaits. None of our scripts does, so a standard loop would waste three descriptors per session.
    """

    _ssock = _csock = None
    _started = False

    def __init__(self) -> None:
        super().__init__(selectors.PollSelector())  # unlike epoll, it opens no descriptor

    def run_forever(self) -> None:
        """Open the descriptors on the first call, then run until stopped."""
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
    """Event loop policy that creates a SessionLoop for each Streamlit session; set after the server's own loop has
    started.
    """

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return a SessionLoop, for example for a new Streamlit session."""
        return SessionLoop()
