"""Messages between a browser component and Python over a WebSocket: JSON requests, binary responses (see `wire`)."""

from __future__ import annotations

import json
from collections.abc import Callable

import anyio
import anyio.to_thread
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from pages.shared.server.wire import Request
from pages.shared.server.worker_pool import WorkerPool

MOST_BYTES = 8192  # of one request


def socket_route(
    path: str,
    answer: Callable[[Request], bytes],
    heavy: Callable[[Request], bool] = lambda _: False,
    limiter: anyio.CapacityLimiter | None = None,
    pool: WorkerPool | None = None,
) -> WebSocketRoute:
    """Return a WebSocket route at `path` that sends one response per request.

    A request that is not a JSON object of at most MOST_BYTES is answered with {"error": ...} as text. `guard` checks
    access.

    Args:
        path: Path of the route.
        answer: Function that computes the response to a request.
        heavy: Function that returns True for requests to be computed in a thread; others are computed on the event
            loop.
        limiter: Limit on concurrent threads; None for the default limit of anyio (40).
        pool: Worker processes that compute the same responses. An idle worker takes heavy requests; while several
            sockets are active, workers take all requests.
    """

    async def endpoint(socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                text = await socket.receive_text()
                try:
                    request = _parsed(text)
                except (ValueError, RecursionError) as error:
                    await socket.send_text(json.dumps({"error": str(error)}))
                    continue
                large = heavy(request)
                reply = await pool.ask(text) if pool and (pool.crowded(id(socket)) or large) else None
                if reply is None:
                    reply = (
                        await anyio.to_thread.run_sync(answer, request, limiter=limiter) if large else answer(request)
                    )
                await socket.send_bytes(reply)
        except (WebSocketDisconnect, KeyError):  # a binary frame, which our components never send, raises KeyError
            return

    return WebSocketRoute(path, endpoint)


def _parsed(text: str) -> Request:
    if len(text) > MOST_BYTES:
        raise ValueError(f"a request may have at most {MOST_BYTES} bytes")
    request = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(request, dict):
        raise ValueError("a request must be a JSON object")
    return request


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")
