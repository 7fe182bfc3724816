"""Web server on this machine for tests of downloads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Server(ThreadingHTTPServer):
    """Server of `content` at any path, with configurable interruptions, redirects and errors."""

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = content
        self.ranges = True
        self.redirect: str | None = None
        self.asked: list[str | None] = []  # Range header of each request
        self.cut_after: list[int] = []  # bytes after which the connection of each of the next responses breaks
        self.hold_after: int | None = None  # bytes of the next response after which nothing comes until `go`
        self.go = threading.Event()
        self.status: list[int] = []  # status codes of the next responses, if not 200

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        if server.redirect and self.path != "/target":
            self.send_response(302)
            self.send_header("Location", server.redirect)
            self.end_headers()
            return
        wanted = self.headers.get("Range")
        server.asked.append(wanted)
        if server.status:
            self.send_error(server.status.pop(0))
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and server.ranges else 0
        if start >= len(server.content):
            self.send_error(416)
            return
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        hold, server.hold_after = server.hold_after, None
        self.wfile.write(body[: server.cut_after.pop(0)] if server.cut_after else body[:hold])
        if hold is not None:
            self.wfile.flush()
            server.go.wait(60)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(content: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    server = Server(content)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.go.set()
    server.shutdown()
    thread.join()
    server.server_close()
