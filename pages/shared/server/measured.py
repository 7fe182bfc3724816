"""Counters and durations of requests and page reruns, collected if DML_METRICS=1."""

from __future__ import annotations

import os
import re
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from pages.shared.server.prometheus import Metrics

OURS = re.compile(r"/api/[a-z_-]+")


def measured() -> bool:
    """Return True if metrics are enabled (DML_METRICS=1)."""
    return os.environ.get("DML_METRICS") == "1"


def rerun(page: str) -> AbstractContextManager[object]:
    """Return a context manager that records the duration of a page's rerun; it does nothing if metrics are disabled."""
    return _numbers().reruns.labels(page or "home").time() if measured() else nullcontext()


class Metering:
    """ASGI middleware around the whole app that counts all requests, including those that the guard refuses."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request to the app and record status and duration of the response."""
        if scope["type"] == "lifespan" or not measured():
            await self.app(scope, receive, send)
            return
        status, begin = "none", time.perf_counter()

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"].endswith("response.start"):
                status = str(message["status"])
            elif message["type"] == "websocket.accept":
                status = "101"
            await send(message)

        try:
            if scope["type"] == "websocket":
                with _numbers().sockets.track_inprogress():
                    await self.app(scope, receive, sent)
            else:
                await self.app(scope, receive, sent)
        finally:
            route = _route(scope["path"], status)
            _numbers().requests.labels(route, status).inc()
            if scope["type"] == "http":
                _numbers().seconds.labels(route).observe(time.perf_counter() - begin)


def _route(path: str, status: str) -> str:
    """Return the label under which requests to `path` are counted; the number of labels is bounded to save memory."""
    if status[0] not in "123":
        return "none"
    if ours := OURS.match(path):
        return ours[0]
    return next((f"/{first}" for first in ("_stcore", "static", "media") if f"/{first}/" in path), "page")


def _numbers() -> Metrics:
    # imported late, because it is needed only if metrics are collected
    from pages.shared.server.prometheus import numbers

    return numbers()
