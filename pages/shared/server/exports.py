"""Downloads from a page: /api/PAGE/NAME.FORMAT?QUERY with the same query string as the link to the page.

The formats svg, pdf and png contain the figure, npz and json contain all of its numbers, and py is a script that
repeats the computation. `dark=1` draws on a black background.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pages.shared.state import untrusted

TYPES = {
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "png": "image/png",
    "npz": "application/octet-stream",
    "json": "application/json",
    "py": "text/x-python; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "toml": "application/toml",
    "html": "text/html; charset=utf-8",
}
NUMBERS = ("npz", "json", "py")
VIEW = ("svg", "pdf", "png", *NUMBERS)
Query = Mapping[str, str]
Make = Callable[[Query, str, bool], tuple[bytes | str, str]]  # (query, format, dark) -> (content, file name)
MOST_AT_ONCE = 2  # maximum number of concurrent exports; a figure takes about one second on one core
LONGEST_QUERY = 8192

# limits exports only; with anyio's default limiter, requests for animations would wait behind exports
LIMITER = anyio.CapacityLimiter(MOST_AT_ONCE)


class Refused(Exception):
    """Refused export, with a message for the visitor. Status 503 means that the request may be repeated later."""

    def __init__(self, words: str, status: int = 404) -> None:
        super().__init__(words)
        self.status = status

    def response(self) -> Response:
        """Return the HTTP response with the message and status of this refusal."""
        return Response(str(self), self.status, headers={"Retry-After": "30"} if self.status == 503 else {})


def export_route(
    path: str,
    make: Make,
    formats: Collection[str] = VIEW,
    compute: Callable[[Query], Awaitable[None]] | None = None,
) -> Route:
    """Return the route GET path.FORMAT?query; make(query, format, dark) returns content and name of the file to send.

    `make` runs in a thread, at most MOST_AT_ONCE at a time. It receives an untrusted query and may raise Refused.
    `compute`, if given, runs first, without this limit, and fills a cache that `make` reads; use it for computations
    that take longer than writing the file.
    """

    async def answer(request: Request) -> Response:
        format = request.path_params["format"]
        if format not in formats or len(request.url.query) > LONGEST_QUERY:
            return Response(status_code=404)
        query = dict(request.query_params)
        dark = untrusted.flag(query.get("dark"), False)
        try:
            if compute is not None:
                await compute(query)
            content, name = await anyio.to_thread.run_sync(make, query, format, dark, limiter=LIMITER)
        except Refused as refused:
            return refused.response()
        return file_response(content, name, format)

    return Route(f"{path}.{{format}}", answer)


def file_response(content: bytes | str, name: str, format: str) -> Response:
    """Return a response that the browser saves as a file called `name` and does not execute."""
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
    }
    return Response(content, media_type=TYPES[format], headers=headers)


def file_name(stem: str, hyper: Mapping[str, float | str], format: str) -> str:
    """Return a file name such as dml-ranking-m0.2.svg, composed of `stem`, the hyper-parameters in `hyper` and the
    format.
    """
    changed = "".join(f"-{k}{untrusted.plain(v)}" for k, v in hyper.items())
    return f"dml-{stem.replace('_', '-')}{changed}.{format}"


def changed(loss: str, hyper: Mapping[str, float | str]) -> dict[str, float | str]:
    """Return the hyper-parameters in `hyper` that differ from the defaults of the loss."""
    defaults = untrusted.hyper(loss, {})
    return {k: v for k, v in hyper.items() if v != defaults[k]}
