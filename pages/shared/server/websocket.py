"""Messages between a component and Python: JSON comes in, a JSON header with arrays goes out, over a WebSocket.

An answer is a uint32 length, that many bytes of JSON, then the arrays one after another; the JSON's "arrays" tells
[dtype, shape] of each. `assets/shared/socket.js` is the other end.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from dmlcore.typing import Array
from pages.shared.server.worker_pool import Crew

MOST_BYTES = 8192  # of one request

Request = dict[str, Any]


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """One answer; dtypes are uint8, int8, uint16, int16, uint32, int32 or float32 of any shape, little-endian."""
    table = {name: [array.dtype.name, list(array.shape)] for name, array in arrays.items()}
    head = json.dumps({**header, "arrays": table}, allow_nan=False).encode()
    return b"".join((struct.pack("<I", len(head)), head, *(np.ascontiguousarray(a).tobytes() for a in arrays.values())))


def unpack(answer: bytes) -> dict[str, Any]:
    """The header of an answer, with its arrays under "arrays": the inverse of `pack`."""
    (length,) = struct.unpack_from("<I", answer)
    header: dict[str, Any] = json.loads(answer[4 : 4 + length])
    at, arrays = 4 + length, {}
    for name, (dtype, shape) in header["arrays"].items():
        count = math.prod(shape)
        arrays[name] = np.frombuffer(answer, dtype, count, at).reshape(shape)
        at += arrays[name].nbytes
    return header | {"arrays": arrays}


def socket_route(
    path: str,
    answer: Callable[[Request], bytes],
    heavy: Callable[[Request], bool] = lambda _: False,
    limiter: anyio.CapacityLimiter | None = None,
    crew: Crew | None = None,
) -> WebSocketRoute:
    """A WebSocket at `path`: one request, one answer; `heavy` requests are answered by a thread, others on the loop.

    `limiter` bounds the threads that answer at once; without one, anyio's common forty do. `crew`: processes that give
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
                reply = await crew.ask(text) if crew and (crew.crowded(id(socket)) or large) else None
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
