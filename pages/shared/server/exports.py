"""What a page lets take along, as a file: /api/PAGE/WHAT.FORMAT?<the page's own query>.

svg, pdf, png: the figure; npz, json: every number; py: a script that computes it again. `dark=1` draws on black.
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
VIEW = ("svg", "pdf", "png", "npz", "json", "py")
Query = Mapping[str, str]
Make = Callable[[Query, str, bool], tuple[bytes | str, str]]  # query, format, dark -> content, name of the file
MOST_AT_ONCE = 2  # a figure takes about a second of one core
LONGEST_QUERY = 8192

LIMITER = anyio.CapacityLimiter(MOST_AT_ONCE)  # of exports alone: no player waits for a file


class Refused(Exception):
    """Why there is no such file, in words for the visitor; status 503: not yet, so that it may be asked for again."""

    def __init__(self, words: str, status: int = 404) -> None:
        super().__init__(words)
        self.status = status

    def response(self) -> Response:
        """The answer that says so."""
        return Response(str(self), self.status, headers={"Retry-After": "30"} if self.status == 503 else {})


def export_route(
    path: str,
    make: Make,
    formats: Collection[str] = VIEW,
    compute: Callable[[Query], Awaitable[None]] | None = None,
) -> Route:
    """GET path.FORMAT?query for some formats of TYPES, answered by make(query, format, dark) -> content, file name.

    `make` runs in a thread, few at a time; it gets any query a stranger may write, and raises Refused. `compute`, if
    given, runs first and fills a cache that `make` reads, where that can take longer than a file may.
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
    """A file to save under `name`; no browser runs what is in it."""
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
    }
    return Response(content, media_type=TYPES[format], headers=headers)


def file_name(stem: str, hyper: Mapping[str, float | str], format: str) -> str:
    """For example dml-ranking-m0.2.svg: what is shown, and the hyper-parameters that differ from the default."""
    changed = "".join(f"-{k}{untrusted.plain(v)}" for k, v in hyper.items())
    return f"dml-{stem.replace('_', '-')}{changed}.{format}"


def changed(loss: str, hyper: Mapping[str, float | str]) -> dict[str, float | str]:
    """The hyper-parameters that differ from those the loss has by default."""
    defaults = untrusted.hyper(loss, {})
    return {k: v for k, v in hyper.items() if v != defaults[k]}
