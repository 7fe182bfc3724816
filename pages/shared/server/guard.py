"""Access control: checks every request before Streamlit or our routes see it, and adds security headers to responses.

Any web page can make a browser send requests to this machine. A request is therefore accepted only if it uses one of
the app's host names (`Host`; an attacker can make a host name of their own resolve to this machine), comes from the
app's own pages (`Origin`, `Sec-Fetch-Site`) and, if the app can be reached from other machines, presents the token (see
`access`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dmlcore.figures.palette import custom_properties
from pages.shared.server import host as streamlit_host
from pages.shared.server.access import OPEN_TO_ALL, Access, AccessError, in_address, is_loopback, listening
from pages.shared.server.content_policy import ASSETS, content_policy
from pages.shared.server.uploads import UploadLimiter

# maximum size in bytes of a WebSocket message to our routes; for Streamlit's messages, server.maxWidgetStateSize
# applies
MOST_BYTES = 65_536
LONGEST_START = 60.0  # maximum number of seconds to wait until the server listens
# paths below the base path that health probes may request without the token
HEALTH = ("_stcore/health", "api/ready")
SECURITY_HEADERS = {
    "X-Frame-Options": "SAMEORIGIN",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    # a page of another site that opened the app in a window cannot navigate that window
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
}
CLOSED = ("/_stcore/metrics", "/_stcore/script-health-check", "/_stcore/agent/")

SIGN_IN = (ASSETS / "src" / "kit" / "sign_in.html").read_text().replace("{palette}", custom_properties())


class Guard:
    """ASGI middleware around the app that refuses cross-site and unauthorised requests and adds security headers."""

    def __init__(self, app: ASGIApp, access: Access | None = None) -> None:
        self.app, self._access, self.uploads = app, access, UploadLimiter()
        # True if a listening socket can be reached from other machines; None until a socket is open
        self._beyond: bool | None = None

    @property
    def access(self) -> Access:
        """Access settings; they are read on first use, so that an invalid setting is reported at server start."""
        if self._access is None:
            self._access = Access.from_environment()
        return self._access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a refusal if the request is not allowed; otherwise pass the request to the app."""
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        send = _with_headers(scope, send)
        refusal = self._refusal(scope)
        if refusal is not None:
            await _answer(scope, send, *refusal)
            return
        if scope["type"] == "websocket" and "/api/" in scope["path"]:
            receive = _bounded(receive, send)
        with self.uploads.admit(scope) as refused:
            if refused:
                await _answer(scope, send, 413, refused, {})
            else:
                await _handed_on(self.app, scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str, dict[str, str]] | None:
        """Return status, text and headers of the response that refuses a request; None if the request is allowed."""
        headers, server = Headers(scope=scope), scope.get("server")
        own = server[0] if server else None
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        name = self.access.names(hosts[0], own) if len(hosts) == 1 else None
        if name is None:
            return (
                403,
                "DML Lab does not answer to this host name. Restart it with DML_HOSTS=name to allow the name.",
                {},
            )
        scheme = self.access.hosts.get(name) or scope.get("scheme", "http").replace("ws", "http")
        if origins and origins != [f"{scheme}://{hosts[0]}"]:
            return 403, "DML Lab answers only its own pages, but this request comes from another site.", {}
        if not _from_here(scope, headers):
            return 403, "DML Lab answers only its own pages, but this request comes from another site.", {}
        if any(closed in f"{scope['path']}/" for closed in CLOSED):
            return 404, "Not found", {}
        beyond = self._is_beyond(own)
        if self.access.refuses(beyond):
            return 503, OPEN_TO_ALL.format(address=own), {}
        if self.access.needs_token(beyond):
            _keep_files_private()
            return self._without_token(scope, headers, hosts[0], scheme)
        return None

    def _without_token(
        self, scope: Scope, headers: Headers, host: str, scheme: str
    ) -> tuple[int, str, dict[str, str]] | None:
        _, _, port = host.rpartition("]")[2].partition(":")
        # browsers send cookies to all ports of a host, so each app uses its own cookie name
        cookie = f"dml-lab-{port}" if port else "dml-lab"
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for key, value in query if key == "token"]
        if tokens and scope["type"] == "http":
            # Remove the token from the query string, also so that the server does not log it.
            scope["query_string"] = urlencode([(k, v) for k, v in query if k != "token"]).encode()
            if self.access.accepts(tokens[-1]):
                return 303, "", {"location": _address(scope), "set-cookie": self._set_cookie(cookie, scheme)}
            return _sign_in("This token is not valid. The app may have been restarted since you received it.")
        known = cookie_parser(headers.get("cookie", "")).get(cookie, "")
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if self.access.knows(known) or self.access.accepts(bearer):
            return None
        if streamlit_host.route(scope) in HEALTH and scope["type"] == "http":
            return None
        if "text/html" in headers.get("accept", ""):
            return _sign_in("")
        return 403, "DML Lab requires its token.", {}

    def _set_cookie(self, name: str, scheme: str) -> str:
        # SameSite=Lax: a Strict cookie would not be sent with the redirect that follows a link from another site.
        secure = "; Secure" if scheme == "https" else ""
        return f"{name}={self.access.cookie()}; Path=/; HttpOnly; SameSite=Lax{secure}"

    def _is_beyond(self, own: str | None) -> bool:
        unix = own is not None and "/" in own  # the path of a Unix socket, not an IP address
        if self._beyond is None and not unix and (places := listening()):
            self._beyond = not all(is_loopback(host) for host, _ in places)
        return bool(self._beyond) or (own is not None and not is_loopback(own))

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse to start if anybody could reach the app without a token; print its URLs once the server listens."""
        try:
            refused = self.access.refuses(self._is_beyond(None)) and OPEN_TO_ALL.format(address=_listed())
        except AccessError as error:
            refused = str(error)
        if refused:
            await receive()
            await send({"type": "lifespan.startup.failed", "message": refused})
            return
        # done before start-up resumes interrupted runs, so that the files of these runs are private, too
        if self.access.needs_token(self._is_beyond(None)):
            _keep_files_private()
        telling = asyncio.create_task(self._tell())
        try:
            await self.app(scope, receive, send)
        finally:
            telling.cancel()

    async def _tell(self) -> None:
        """Print the app's URLs once a socket is open; stop the server if anybody can reach the app without a token.

        Some servers open their socket only after the start-up event.
        """
        deadline = asyncio.get_running_loop().time() + LONGEST_START
        while not (places := listening()):
            if asyncio.get_running_loop().time() > deadline:
                return  # the server listens on a Unix socket, which has no address to print
            await asyncio.sleep(0.05)
        if self.access.refuses(self._is_beyond(None)):
            print(OPEN_TO_ALL.format(address=_listed()), file=sys.stderr, flush=True)
            signal.raise_signal(signal.SIGTERM)
            return
        addresses = [a for host, port in places for a in self._addresses(host, port)]
        print("\n  DML Lab is ready. Open", *(f"    {a}" for a in dict.fromkeys(addresses)), "", sep="\n", flush=True)

    def _addresses(self, host: str, port: int) -> list[str]:
        """Return the URLs at which a browser can open the app, with the token if it is required."""
        beyond = self._is_beyond(None)
        query = f"?token={self.access.token}" if self.access.needs_token(beyond) else ""
        scheme, path = streamlit_host.scheme(), streamlit_host.base()
        hosts = ["127.0.0.1", streamlit_host.internal_address()] if host in ("0.0.0.0", "::") else [host]
        addresses = [f"{scheme}://{in_address(h)}:{port}{path}{query}" for h in hosts if h]
        public = [(s, n) for n, s in self.access.hosts.items() if s]
        return addresses + [f"{s}://{n}{path}{query}" for s, n in public]


def _keep_files_private() -> None:
    """Make files of this process and its children unreadable for other accounts on this machine.

    The token protects only the app, not the runs, notes and logs that the app writes.
    """
    os.umask(0o077)


def _listed() -> str:
    return ", ".join(f"{in_address(host)}:{port}" for host, port in listening()) or "an unknown address"


def _from_here(scope: Scope, headers: Headers) -> bool:
    """Return False if the browser reports that a page of another site caused the request.

    Links from other sites may open pages but not /api/ URLs, where a single request can take a minute of computation.
    """
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return followed and scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and "/api/" not in scope["path"]


def _address(scope: Scope) -> str:
    """Return path and query string of a request; extra leading slashes are dropped, because // would name a host."""
    path = "/" + (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").lstrip("/\\")
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _sign_in(given: str) -> tuple[int, str, dict[str, str]]:
    return 403, SIGN_IN.replace("{said}", given), {"content-type": "text/html; charset=utf-8"}


def _with_headers(scope: Scope, send: Send) -> Send:
    """Return a wrapper of `send` that adds the security headers to a response; existing CSP headers are kept."""
    starts = ("http.response.start", "websocket.accept", "websocket.http.response.start")
    accepted = False

    async def sent(message: Message) -> None:
        nonlocal accepted
        if message["type"] in starts:
            accepted = True
            message.setdefault("headers", [])
            headers = MutableHeaders(scope=message)
            headers.update(SECURITY_HEADERS)
            headers.append("Content-Security-Policy", content_policy())
        elif message["type"] == "websocket.close" and not accepted:
            await _answer(scope, sent, 403, "Refused", {})  # the server's own response would lack the security headers
            return
        await send(message)

    return sent


async def _answer(scope: Scope, send: Send, status: int, text: str, headers: dict[str, str]) -> None:
    """Send a complete response to a refused HTTP request or WebSocket handshake."""
    prefix = ""
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008})
            return
        prefix = "websocket."
    fields = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store"} | headers
    body = text.encode()
    raw = [(k.encode(), v.encode("latin-1")) for k, v in (fields | {"content-length": str(len(body))}).items()]
    await send({"type": f"{prefix}http.response.start", "status": status, "headers": raw})
    empty = scope["type"] == "http" and scope["method"] == "HEAD"
    await send({"type": f"{prefix}http.response.body", "body": b"" if empty else body})
    if prefix:
        await asyncio.sleep(0.01)  # let uvicorn close the connection first; otherwise it logs an error


def _bounded(receive: Receive, send: Send) -> Receive:
    """Return a wrapper of `receive` that closes the WebSocket if a message is longer than MOST_BYTES."""

    async def received() -> Message:
        message = await receive()
        if len(message.get("bytes") or message.get("text") or "") <= MOST_BYTES:
            return message
        await send({"type": "websocket.close", "code": 1009})
        return {"type": "websocket.disconnect", "code": 1009}

    return received


async def _handed_on(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run the app; if it fails before it starts a response, send an error response with the security headers."""
    begun = False

    async def sent(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await app(scope, receive, sent)
    except Exception:
        if not begun:
            with contextlib.suppress(Exception):
                await _answer(scope, send, 500, "Internal Server Error", {})
        raise
