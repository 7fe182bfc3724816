"""Limits on the memory that uploaded files take: per session, and for all sessions of a server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import Scope

from pages.shared.server import host

LARGEST = 21 << 20  # bytes of one request: server.maxUploadSize and what surrounds the file
PER_SESSION = 2 * LARGEST  # the app has one box for one file, which may be replaced
IN_ALL = 20 * LARGEST
PURGE_INTERVAL = 60.0  # seconds between two removals of files whose session is gone


class UploadLimiter:
    """Counts the bytes that sessions have uploaded or are uploading, and says which upload is too much.

    Args:
        stored: Returns the bytes that each session has stored.
    """

    def __init__(self, stored: Callable[[], Mapping[str, int]] = host.uploaded_bytes) -> None:
        self.stored = stored
        self._arriving: Counter[str] = Counter()

    @contextmanager
    def admit(self, scope: Scope) -> Iterator[str]:
        """Count a request as arriving while it is handled; yields why it is refused, "" if it is not or no upload."""
        session, size = _session(scope), _size(scope)
        if not session:
            yield ""
            return
        host.remove_orphaned_uploads()
        held = Counter(self.stored()) + self._arriving
        if held[session] + size > PER_SESSION:
            yield "This session has uploaded as much as it may. Remove a file, or reload the page."
            return
        if held.total() + size > IN_ALL:
            yield "The server holds as many uploaded files as it can. Try again in a few minutes."
            return
        self._arriving[session] += size
        try:
            yield ""
        finally:
            self._arriving[session] -= size
            self._arriving += Counter()  # drops sessions without arriving bytes


async def purge() -> None:
    """Remove the files of closed sessions from time to time, until cancelled."""
    while True:
        await asyncio.sleep(PURGE_INTERVAL)
        host.remove_orphaned_uploads()


def _session(scope: Scope) -> str:
    """Return the session that a request uploads a file for, "" if it is no upload."""
    if scope["type"] != "http" or scope["method"] != "PUT":
        return ""
    return str(scope["path"].partition("/_stcore/upload_file/")[2].partition("/")[0])


def _size(scope: Scope) -> int:
    """Return how many bytes a request announces; the most that one may have if it does not."""
    announced = Headers(scope=scope).get("content-length", "")
    return int(announced) if announced.isdecimal() and len(announced) < 16 else LARGEST
