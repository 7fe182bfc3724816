"""A real server and a real Chromium for the browser tests and the latency benchmark."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SCREENSHOTS = Path(__file__).parent / "screenshots"
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP evil.example 127.0.0.1",  # a name of somebody else that points here
]
THEMES = ("light", "dark")
WIDTHS = (1440, 900)
PATIENCE = 60.0  # seconds: CI has two slow cores for two browsers and their servers
LOOK = 0.1  # seconds from one look at a page to the next: each costs the browser and its driver some milliseconds


def chromium_path() -> str | None:
    """Debian's Chromium, or None: the one without a window, where it is, takes a quarter less processor for a page."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


def free_port() -> int:
    """A TCP port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(check: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """What `check` returns once nothing fails in it, tried again and again; its last failure when time is up.

    What a screen shows follows its causes late and in no fixed order: every test of a page polls what it asserts.
    Ask the browser in `check`: `page.url` and lists that event handlers fill stand still until Playwright is called.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except Exception:
            if time.monotonic() > deadline:
                raise
        time.sleep(LOOK)


def becomes(read: Callable[[], Any], wanted: Any) -> Any:
    """What `read` returns once it equals `wanted`, or fulfils it if that is a function."""

    def check() -> Any:
        value = read()
        assert wanted(value) if callable(wanted) else value == wanted, f"shown: {value!r}"
        return value

    return eventually(check)


def quiet(read: Callable[[], Any], seconds: float = 0.5) -> Any:
    """What `read` returns once it has returned the same for so many seconds: nothing is on its way any more."""
    value, since, deadline = read(), time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() < since + seconds:
        assert time.monotonic() < deadline, f"it never rests: {value!r}"
        time.sleep(LOOK)
        if (now := read()) != value:
            value, since = now, time.monotonic()
    return value


# What a press of Back does: the app shows the address without being loaded again, which costs the browser four seconds.
FOLLOW = "url => { history.pushState({}, '', url); dispatchEvent(new PopStateEvent('popstate')); }"
BETWEEN = "lessons"  # the page that costs least: nothing moves, nothing is fetched


def go(page: Any, url: str) -> None:
    """Have a tab show an address of the app; one that shows the app already does not load it again.

    It goes by way of another page, so that nothing of the page before is taken for what the address shows: half a
    second of processor, except at the start of a test, whose tab waits there. A walk of many pages takes `walk`.
    """
    if not page.url.startswith(origin := "/".join(url.split("/")[:3])):
        page.goto(url)
        return
    if page.evaluate("location.pathname + location.search") != f"/{BETWEEN}":
        page.evaluate(FOLLOW, f"{origin}/{BETWEEN}")
    between = page.get_by_role("heading", name="Lessons", exact=True)
    between.wait_for()
    if url == f"{origin}/{BETWEEN}":
        return
    page.evaluate(FOLLOW, url)
    between.wait_for(state="detached")


def walk(page: Any, url: str) -> None:
    """Have a tab show another page of the app than it does, straight from there: its title is that of the new one."""
    if not page.url.startswith("/".join(url.split("/")[:3])):
        page.goto(url)
        return
    before = page.title()
    page.evaluate(FOLLOW, url)
    page.wait_for_function("before => document.title !== before", arg=before, polling=1000 * LOOK)


# Counts what a page sends by its sockets, from now on, by address; it stays until the page is loaded again.
COUNT = """() => {
  const send = (WebSocket.prototype.plain ??= WebSocket.prototype.send);
  window.sent = {};
  WebSocket.prototype.send = function (data) {
    window.sent[this.url] = (window.sent[this.url] ?? 0) + 1;
    return send.call(this, data);
  };
}"""
SENT = """route => Object.entries(window.sent).reduce((sum, [url, n]) => sum + (url.includes(route) ? n : 0), 0)"""


def counted(page: Any) -> Callable[[str], int]:
    """From now on: how many messages a page that shows the app has sent by sockets of a route."""
    page.evaluate(COUNT)
    return lambda route: page.evaluate(SENT, route)


def address(page: Any) -> str:
    """The link of the page, of this moment."""
    return page.evaluate("location.href")


def press(page: Any, locator: Any) -> tuple[float, float]:
    """Press the mouse on the middle of something that rests where it is and lies on top; its place."""
    locator.hover()
    box = locator.bounding_box()
    page.mouse.down()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Any, locator: Any, dx: float, dy: float, release: bool = True) -> None:
    """Take something by its middle along, in small steps where the hand holds it: each is a frame to be drawn."""
    x, y = press(page, locator)
    page.mouse.move(x + dx, y + dy, steps=4 if release else 12)
    if release:
        page.mouse.up()


class Server:
    """The app as `make run` serves it, on a port of its own, with its runs in `runs` and its data where `data` says."""

    def __init__(
        self,
        runs: Path,
        port: int | None = None,
        script: Path = ROOT / "app.py",
        descriptors: tuple[int, int] | None = None,  # soft and hard limit
        data: Path | None = None,
    ) -> None:
        self.runs, self.port, self.script, self.descriptors = runs, port or free_port(), script, descriptors
        self.environment = {"DML_RUNS": str(runs)} | ({"DML_DATA": str(data)} if data else {})
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        """Start and wait for the health route."""
        command = [sys.executable, "-m", "streamlit", "run", str(self.script), "--server.headless=true"]
        if self.descriptors:
            soft, hard = self.descriptors
            command = ["bash", "-c", f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$@"', "bash", *command]
        self.log = open(self.runs.parent / f"server-{self.port}.log", "ab")  # noqa: SIM115 (closed in stop)
        self.process = subprocess.Popen(
            [*command, f"--server.port={self.port}"],
            cwd=ROOT,
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        for _ in range(1200):
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1):
                return self
            time.sleep(0.1)
        raise RuntimeError(f"the app did not start; see {self.log.name}")

    def open_descriptors(self) -> int:
        """How many descriptors the server holds."""
        assert self.process
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def kill(self) -> None:
        """kill -9, as a crash would."""
        assert self.process
        self.process.kill()
        self.process.wait()
        self.log.close()


@contextlib.contextmanager
def served(runs: Path, data: Path | None = None) -> Iterator[Server]:
    """A server started where a shell allows few descriptors, with one process for fields, ended afterwards."""
    server = Server(runs, descriptors=(256, 4096), data=data)
    server.environment["DML_FIELD_WORKERS"] = "1"  # another one costs two seconds of processor
    server.start()
    try:
        yield server
    finally:
        server.kill()
