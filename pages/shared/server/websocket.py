"""Messages between a component and Python over a WebSocket: JSON comes in, the bytes of `wire` go out."""

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
    """A WebSocket at `path`: one request, one answer; `heavy` requests are answered by a thread, others on the loop.

    `limiter` bounds the threads that answer at once; without one, anyio's common forty do. `pool`: processes that give
    the same answers; an idle one takes heavy requests, and any while several sockets ask at once.

    A request that is no JSON object within MOST_BYTES gets {"error": ...} as text. Who may ask is for the guard to say.
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
        except (WebSocketDisconnect, KeyError):  # KeyError: a binary frame, which nobody of ours sends
            return

    return WebSocketRoute(path, endpoint)


def _parsed(text: str) -> Request:
    if len(text) > MOST_BYTES:
        raise ValueError(f"a request has at most {MOST_BYTES} bytes")
    request = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(request, dict):
        raise ValueError("a request is a JSON object")
    return request


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")
