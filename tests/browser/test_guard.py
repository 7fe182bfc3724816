"""Security of the real server: requests of strangers are refused, and every response has its security headers."""

from __future__ import annotations

import os
import queue
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser.harness import PATIENCE, ROOT, becomes, free_port, quiet

HEADERS = {
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
}
HANDSHAKE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
SOCKETS = ("/_stcore/stream", "/api/field", "/api/toys")
FIRST_SOCKETS = SOCKETS[:2]  # the other pages take seconds to load
PLACES = ("/", "/runs", "/api/assets/1/kit/dom.js", "/_stcore/host-config", "/favicon.png")
ORIGINS = (
    "http://evil.example",
    "http://evil.example:{port}",
    "http://127.0.0.1:9999",
    "http://127.0.0.1",
    "http://localhost:{port}",
    "https://127.0.0.1:{port}",
    "http://evil@127.0.0.1:{port}",
    "http://127.0.0.1:{port}.evil.example",
    "null",
    "",
)
HOSTS = (
    "evil.example:{port}",
    "evil.example",
    "localhost.evil.example:{port}",
    "127.0.0.1.:{port}",
    "localhost:{port}@evil.example",
    "127.0.0.2:{port}",
    "0.0.0.0:{port}",
)
FRAMES = (
    ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"),
    ("Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: frame"),
    ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"),
    ("Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"),
)


def ask(port: int, path: str, *lines: str, method: str = "GET") -> tuple[int, dict[str, str]]:
    """Return status and headers of the response to a request with exactly these lines."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sent:
        sent.sendall("\r\n".join((f"{method} {path} HTTP/1.1", *lines, "", "")).encode())
        head = b""
        while b"\r\n\r\n" not in head and (part := sent.recv(4096)):
            head += part
    first, *rest = head.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    return int(first.split()[1]), {k.lower(): v for k, v in (line.split(": ", 1) for line in rest)}


def foreign(port: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield path and header lines of requests that a page of another site can make a browser send."""
    own = f"Host: 127.0.0.1:{port}"
    for path in SOCKETS:
        for origin in ORIGINS:
            yield path, (own, f"Origin: {origin.format(port=port)}", *HANDSHAKE)
        for host in HOSTS:
            name = host.format(port=port)
            yield path, (f"Host: {name}", f"Origin: http://{name}", *HANDSHAKE)
    for path in PLACES:
        yield from ((path, (f"Host: {host.format(port=port)}",)) for host in HOSTS)
        yield from ((path, (own, *frame)) for frame in FRAMES)
        yield path, (own, "Host: evil.example")
        yield path, (own, f"Origin: http://127.0.0.1:{port}", "Origin: http://evil.example")
        yield path, ("Accept: */*",)


def test_no_foreign_handshake_or_request_is_answered(server):
    asked = [(path, lines, ask(server.port, path, *lines)) for path, lines in foreign(server.port)]
    assert len(asked) > 100
    assert [(path, lines) for path, lines, (status, _) in asked if status not in (400, 403)] == []
    # 400 is the server's own response to malformed HTTP: two Host headers, or none.
    assert "Rejecting WebSocket" not in Path(server.log.name).read_text(), (
        "Streamlit saw one and sent requests elsewhere (D4)"
    )
    refused = [headers for _, _, (status, headers) in asked if status == 403]
    assert len(refused) > 100
    assert all(headers.items() >= HEADERS.items() for headers in refused)


def test_own_handshakes_and_requests_are_answered(server):
    for name in ("127.0.0.1", "localhost", "[::1]"):
        own = f"{name}:{server.port}"
        for path in FIRST_SOCKETS:
            assert ask(server.port, path, f"Host: {own}", f"Origin: http://{own}", *HANDSHAKE)[0] == 101
        assert ask(server.port, "/", f"Host: {own}", "Sec-Fetch-Site: none")[0] == 200


@pytest.mark.browser
def test_every_answer_of_a_crawl_has_the_headers_and_nothing_is_fetched_from_elsewhere(server, visitor):
    page = visitor()
    asked, seen = [], {}
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda answer: seen.setdefault(answer.url, answer.headers))
    page.goto(f"{server.url}/runs")
    page.get_by_test_id("stApp").wait_for()
    page.goto(server.url)
    page.locator("canvas.plane[data-seq]").wait_for()

    def kinds() -> set[str]:
        page.title()
        return {url.split("/")[3] for url in seen}

    becomes(kinds, lambda found: found >= {"", "static", "_stcore", "api", "runs"})
    quiet(lambda: (page.title(), len(asked)))
    assert [url for url in asked if not url.startswith((server.url, "data:", "blob:"))] == []
    bare = [url for url, headers in seen.items() if not headers.items() >= HEADERS.items()]
    assert [url for url in bare if url.startswith("http")] == []
    assert all(
        "frame-ancestors 'self'" in h["content-security-policy"] for u, h in seen.items() if u.startswith("http")
    )


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/_stcore/health", "GET", 200),
        ("/api/ready", "GET", 200),
        ("/api/metrics", "GET", 404),
        ("/_stcore/metrics", "GET", 404),
        ("/_stcore/agent/interact", "POST", 404),
        ("/_stcore/agent/openapi.json", "GET", 404),
        ("/_stcore/upload_file/a/b", "PUT", 403),
        ("/api/nothing", "GET", 404),
        ("/api/field/export.json", "GET", 200),
        ("/media/nothing.png", "GET", 404),
        ("/static/js/nothing.js", "GET", 200),
        ("//evil.example/", "GET", 400),
        ("/", "DELETE", 405),
    ],
)
def test_answers_and_refusals_alike_have_the_headers(server, path, method, status):
    found, headers = ask(server.port, path, f"Host: 127.0.0.1:{server.port}", "Content-Length: 0", method=method)
    assert found == status
    assert headers.items() >= HEADERS.items()
    assert re.search(r"script-src 'self' blob:( 'sha256-[^']+')+;", headers["content-security-policy"])


def test_a_message_of_100_megabytes_is_refused_before_it_is_sent(server):
    """The first bytes announce the length; the server closes the connection without waiting for or storing the rest."""
    for path in ("/api/field", "/_stcore/stream"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as opened:
            lines = (f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", *HANDSHAKE, "", "")
            opened.sendall("\r\n".join(lines).encode())
            answer = opened.recv(4096)
            assert answer.startswith(b"HTTP/1.1 101")
            opened.sendall(b"\x81\xff" + (100_000_000).to_bytes(8, "big") + b"\0\0\0\0")
            received = answer.split(b"\r\n\r\n", 1)[1]
            while part := opened.recv(4096):
                received += part
            assert b"\x88" in received
            assert (1009).to_bytes(2, "big") in received


ATTACK = """<!doctype html><title>attack</title>
<iframe width=1200 height=800 src="{url}"></iframe><img src="{url}favicon.png">
<script>
window.opened = [];
for (const path of ["_stcore/stream", "api/field"]) {{
  const socket = new WebSocket("{url}".replace("http", "ws") + path);
  socket.onopen = () => opened.push(path + " opened");
  socket.onerror = () => opened.push(path + " refused");
}}
fetch("{url}_stcore/host-config", {{mode: "no-cors"}})
  .then(() => opened.push("read"), () => opened.push("fetch refused"));
</script>"""


@contextmanager
def attacker(url: str) -> Iterator[int]:
    """Yield the port of another site's web server on this machine."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(ATTACK.format(url=url).encode())

        def log_message(self, *_: object) -> None:
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    try:
        yield serving.server_port
    finally:
        serving.shutdown()
        serving.server_close()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1"])
def test_a_page_of_another_site_or_port_frames_reads_and_opens_nothing(browser, server, name):
    """Threats D2 and D5: a frame shows nothing to click, sockets are refused, images do not load."""
    with attacker(f"{server.url}/") as port, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://{name}:{port}/")
        found = {"_stcore/stream refused", "api/field refused", "fetch refused"}
        assert becomes(lambda: set(page.evaluate("opened")), found)
        assert page.evaluate("document.images[0].naturalWidth") == 0
        framed = page.frames[1]
        assert framed.evaluate("document.querySelectorAll('button, input, a, #root').length") == 0


@pytest.mark.browser
def test_a_name_that_was_made_to_point_here_shows_nothing(visitor, server):
    """Threat D1: DNS rebinding, as a browser sees it."""
    page = visitor()
    answer = page.goto(f"http://evil.example:{server.port}/")
    assert answer.status == 403
    assert "does not answer to this host name" in page.inner_text("body")


def command(*words: str, **environment: str) -> subprocess.Popen[str]:
    """Yield a server started like a user would, from the project's folder."""
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("DML_")} | {"PYTHONUNBUFFERED": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


UVICORN = ("-m", "uvicorn", "app:app", "--host", "0.0.0.0", "--port")


@pytest.mark.parametrize(
    ("words", "token", "sentence"),
    [
        (UVICORN, "off", "DML Lab does not start: it would listen on 0.0.0.0"),
        (("app.py",), "short", "DML_TOKEN needs at least 16 characters"),
    ],
)
def test_a_start_that_cannot_be_meant_ends_with_a_sentence(words, token, sentence):
    port = () if words == ("app.py",) else (str(free_port()),)
    started = command(*words, *port, DML_TOKEN=token)
    said, _ = started.communicate(timeout=PATIENCE)
    assert started.returncode != 0
    assert sentence in said
    assert "Traceback" not in said


@pytest.mark.browser
def test_beyond_loopback_the_printed_address_lets_in_and_no_other(visitor):
    """This also holds where only uvicorn was given the address; neither the printed token nor a wrong one is in the
    log.
    """
    port = free_port()
    started = command(*UVICORN, str(port), DML_HOSTS="https://lab.example.org")
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: [lines.put(line) for line in started.stdout], daemon=True).start()
    try:
        said = ""
        while f"http://127.0.0.1:{port}/?token=" not in said:
            said += lines.get(timeout=PATIENCE)
        token = said.split("?token=")[1].split()[0]
        own = f"Host: 127.0.0.1:{port}"
        for path in FIRST_SOCKETS:
            assert ask(port, path, own, *HANDSHAKE)[0] == 403
        assert ask(port, "/?token=wrong-wrong-wrong", own)[0] == 403
        assert ask(port, "/_stcore/health", own)[0] == 200
        assert ask(port, "/api/ready", own)[0] in (200, 503)
        assert ask(port, "/api/metrics", own)[0] == 403

        # Headers that a proxy of docs/reverse-proxy.md sends, with its secret and without.
        public = ("Host: lab.example.org", "X-Forwarded-Proto: https", "X-Forwarded-For: 203.0.113.7")
        secret = f"Authorization: Bearer {token}"
        for path in FIRST_SOCKETS:
            handshake = (path, *public, *HANDSHAKE)
            assert ask(port, *handshake, secret, "Origin: https://lab.example.org")[0] == 101
            assert ask(port, *handshake, secret, "Origin: https://evil.example")[0] == 403
            assert ask(port, *handshake, secret, "Origin: http://lab.example.org")[0] == 403
            assert ask(port, *handshake, "Origin: https://lab.example.org")[0] == 403
        assert ask(port, "/", "Host: evil.example", "X-Forwarded-Host: lab.example.org", secret)[0] == 403

        page = visitor()
        page.goto(f"http://127.0.0.1:{port}/runs")
        page.get_by_label("Token").fill("wrong-wrong-wrong")
        page.get_by_role("button", name="Open").click()
        page.get_by_text("This token is not valid").wait_for()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Open").click()
        page.get_by_test_id("stApp").wait_for()
        page.get_by_role("button", name="Training").wait_for()  # the menu, which arrives through the socket
        assert page.url == f"http://127.0.0.1:{port}/runs"
        cookies = {c["name"]: c for c in page.context.cookies()}
        assert cookies[f"dml-lab-{port}"]["httpOnly"]
        assert token not in str(cookies)
    finally:
        started.terminate()
        started.wait()
    log = [line for line in lines.queue if not line.startswith("    http")]  # the printed addresses
    assert any("GET /runs HTTP/1.1" in line for line in log)
    assert [line for line in log if token in line or "wrong-wrong-wrong" in line or "without completing" in line] == []


def test_the_server_takes_the_descriptors_it_may_have(server):
    """The server starts at a soft limit of 256 file descriptors (D8)."""
    limits = Path(f"/proc/{server.process.pid}/limits").read_text()
    soft, hard = re.search(r"Max open files +(\d+) +(\d+)", limits).groups()
    assert (int(soft), int(hard)) == (4096, 4096)


def test_a_session_holds_one_descriptor_and_a_closed_one_none(server):
    """A session needs one file descriptor, for its socket; 300 live sessions fit into 1,024 even if that is the hard
    limit.
    """
    before = quiet(server.open_descriptors)
    with ExitStack() as visitors:
        for _ in range(30):
            opened = visitors.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            lines = ("GET /_stcore/stream HTTP/1.1", f"Host: 127.0.0.1:{server.port}", *HANDSHAKE, "", "")
            opened.sendall("\r\n".join(lines).encode())
            assert opened.recv(4096).startswith(b"HTTP/1.1 101")
        assert quiet(server.open_descriptors) <= before + 31
    becomes(server.open_descriptors, lambda held: held <= before + 1)
