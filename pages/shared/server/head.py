"""Style sheet and script of the app in the head of every page; Streamlit itself offers no way to add them."""

from __future__ import annotations

from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# These response headers no longer match the extended document. As request headers they are dropped, because they would
# yield a partial or compressed document.
_OF_THE_FILE = ("etag", "last-modified", "accept-ranges")
_OF_A_PART = (b"if-none-match", b"if-modified-since", b"range", b"accept-encoding")


_NO_PAGES = ("api", "static", "media", "component", "_stcore")  # first path segments that do not address pages


class Head:
    """ASGI middleware that links assets/src/kit/page/ in the HTML document that Streamlit serves for every page.

    Relative links in this document break if the URL has a folder (/a/b), so such a URL is redirected to /a-b.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on all messages; collect an HTML document completely, then send it with style sheet and script added."""
        if scope["type"] != "http" or "text/html" not in Headers(scope=scope).get("accept", ""):
            return await self.app(scope, receive, send)
        if (address := _flat(scope)) is not None:
            return await RedirectResponse(address, 303)(scope, receive, send)
        start: Message | None = None
        body = b""

        async def whole(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_document(message):
                start = message
            elif start is None or message["type"] != "http.response.body":
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    start["headers"], body = _with_head(start, body)
                    await send(start)
                    await send({"type": "http.response.body", "body": body})

        asked = [(name, value) for name, value in scope["headers"] if name not in _OF_A_PART]
        await self.app(dict(scope, headers=asked), receive, whole)
        return None


def _flat(scope: Scope) -> str | None:
    """Return the URL (/a-b) to which a page URL with a folder (/a/b) is redirected; None if there is no folder."""
    from pages.shared.server import host  # imported late to shorten the time until the server listens

    first, *rest = host.route(scope).strip("/").split("/")
    if not rest or first in _NO_PAGES:
        return None
    return host.base() + quote("-".join([first, *rest]), safe="")


def _is_document(start: Message) -> bool:
    return start["status"] == 200 and Headers(raw=start["headers"]).get("content-type", "").startswith("text/html")


def _with_head(start: Message, body: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return headers and body with the style sheet and script linked in the head; an empty body (HEAD) stays empty."""
    # imported late because static_files loads the losses, which would delay the start of the server
    from pages.shared.server import host, static_files

    at = f"{host.base()}api/assets/{static_files.version()}/kit/page/page"
    links = f'<link rel="stylesheet" href="{at}.css"><script type="module" src="{at}.js"></script>'
    longer = body.replace(b"</head>", links.encode() + b"</head>", 1)
    headers = MutableHeaders(raw=list(start["headers"]))
    for name in _OF_THE_FILE:
        del headers[name]
    if body:
        headers["content-length"] = str(len(longer))
    return headers.raw, longer
