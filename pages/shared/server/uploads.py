"""Memory limits for uploaded files, per session and for all sessions of a server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import Scope

from pages.shared.server import host

LARGEST = 201 << 20  # maximum number of bytes per request: server.maxUploadSize plus the multipart overhead
# maximum number of bytes per session: embeddings, labels and images of an import, or the old and the new file while one
# replaces the other
PER_SESSION = 2 * LARGEST
IN_ALL = 5 * LARGEST
PURGE_INTERVAL = 60.0  # seconds between two calls that remove the files of closed sessions


class UploadLimiter:
    """Counter of the bytes that sessions have uploaded or are uploading; refuses uploads that exceed the limits.

    Args:
        stored: Function that returns the number of stored bytes by session id.
    """

    def __init__(self, stored: Callable[[], Mapping[str, int]] = host.uploaded_bytes) -> None:
        self.stored = stored
        self._arriving: Counter[str] = Counter()

    @contextmanager
    def admit(self, scope: Scope) -> Iterator[str]:
        """Reserve memory for the size of an upload while the block handles its request.

        Yields the reason for a refusal, or "" if the request is accepted or is not an upload.
        """
        session, size = _session(scope), _size(scope)
        if not session:
            yield ""
            return
        host.remove_orphaned_uploads()
        held = Counter(self.stored()) + self._arriving
        if held[session] + size > PER_SESSION:
            yield "This session has reached its upload limit. Remove a file, or reload the page."
            return
        if held.total() + size > IN_ALL:
            yield "The server has reached its limit for uploaded files. Try again in a few minutes."
            return
        self._arriving[session] += size
        try:
            yield ""
        finally:
            self._arriving[session] -= size
            self._arriving += Counter()  # removes sessions whose count is 0


async def purge() -> None:
    """Remove the uploaded files of closed sessions every PURGE_INTERVAL seconds until cancelled."""
    while True:
        await asyncio.sleep(PURGE_INTERVAL)
        host.remove_orphaned_uploads()


def _session(scope: Scope) -> str:
    """Return the id of the session that a request uploads a file to; "" if the request is not an upload."""
    if scope["type"] != "http" or scope["method"] != "PUT":
        return ""
    return str(scope["path"].partition("/_stcore/upload_file/")[2].partition("/")[0])


def _size(scope: Scope) -> int:
    """Return the Content-Length of a request in bytes, or LARGEST if the header is missing or invalid."""
    announced = Headers(scope=scope).get("content-length", "")
    return int(announced) if announced.isdecimal() and len(announced) < 16 else LARGEST
