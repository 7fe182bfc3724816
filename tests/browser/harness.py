"""A real server and a real Chromium, for the browser tests."""

from __future__ import annotations

import contextlib
import os
import random
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
    "--host-resolver-rules=MAP evil.example 127.0.0.1",  # a host name of another site that resolves to this machine
]
THEMES = ("light", "dark")
WIDTHS = (1440, 900)
PATIENCE = 60.0  # seconds: CI has two slow cores for two browsers and their servers
LOOK = 0.1  # seconds between two polls of a page; each poll costs browser and driver some milliseconds


def chromium_path() -> str | None:
    """Return the path of Debian's Chromium, or None. The headless build is preferred; it needs a quarter less CPU time
    per page.
    """
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


def free_port() -> int:
    """Return a TCP port that is not in use.

    It is below the ports that Linux gives to outgoing connections (32768 and above), so that no browser takes it before
    a server listens, or while a server is restarted.
    """
    for port in random.SystemRandom().sample(range(20_000, 32_000), 1000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


def eventually(check: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Call `check` repeatedly until it succeeds and return its result; raise its last error on timeout.

    The screen follows its causes with delays and in no fixed order, so tests poll everything they assert. Query the
    browser inside `check`: `page.url` and lists filled by event handlers are updated only while Playwright runs.
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
    """Poll `read` until its result equals `wanted`, or fulfils it if `wanted` is a function; return the result."""

    def check() -> Any:
        value = read()
        assert wanted(value) if callable(wanted) else value == wanted, f"shown: {value!r}"
        return value

    return eventually(check)


def quiet(read: Callable[[], Any], seconds: float = 0.5) -> Any:
    """Poll `read` until its result has been the same in `seconds` / LOOK reads in a row; return the result.

    Reads are counted because they take longer on a loaded machine, as does what the page has to do.
    """
    value, same, deadline = read(), 0, time.monotonic() + PATIENCE
    while same * LOOK < seconds:
        assert time.monotonic() < deadline, f"does not settle: {value!r}"
        time.sleep(LOOK)
        now = read()
        value, same = now, (same + 1 if now == value else 0)
    return value


# Emulate a press of Back: the app shows the address without a page load, which would cost the browser four seconds.
FOLLOW = "url => { history.pushState({}, '', url); dispatchEvent(new PopStateEvent('popstate')); }"
BETWEEN = "lessons"  # cheapest page: nothing moves, nothing is fetched


def go(page: Any, url: str) -> None:
    """Show an address of the app in a tab, without a page load if the tab shows the app already.

    The tab passes through another page first, so that content of the previous page is not taken for the new one. This
    costs half a second of CPU time, except at the start of a test, when the tab is already there. Use `walk` to visit
    many pages.
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
    """Go straight to another page of the app and wait until the title is that of the new page."""
    if not page.url.startswith("/".join(url.split("/")[:3])):
        page.goto(url)
        return
    before = page.title()
    page.evaluate(FOLLOW, url)
    page.wait_for_function("before => document.title !== before", arg=before, polling=1000 * LOOK)


# Count the messages that a page sends through its sockets, by address, until the next page load.
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
    """Count messages from now on; return a function that gives the number sent through sockets of a route."""
    page.evaluate(COUNT)
    return lambda route: page.evaluate(SENT, route)


def address(page: Any) -> str:
    """Return the current link of the page."""
    return page.evaluate("location.href")


def press(page: Any, locator: Any) -> tuple[float, float]:
    """Click on the centre of an element that is at rest and on top; return its position."""
    locator.hover()
    box = locator.bounding_box()
    page.mouse.down()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page: Any, locator: Any, dx: float, dy: float, release: bool = True) -> None:
    """Drag an element by its centre, in small steps if the button stays pressed: each step is one frame to draw."""
    x, y = press(page, locator)
    page.mouse.move(x + dx, y + dy, steps=4 if release else 12)
    if release:
        page.mouse.up()


def press_download(page: Any, button: Any) -> Any:
    """Press a download button of Streamlit and return the download.

    Each run of the script replaces the file of such a button, and a press before the page has received the new one is
    answered with an error. The button is therefore pressed again if no download begins.
    """

    def pressed() -> Any:
        with page.expect_download(timeout=10_000) as taken:
            button.click()
        return taken.value

    return eventually(pressed)


class Server:
    """The app as `make run` serves it, on its own port, with runs in `runs` and data in `data`."""

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
        """Start the server and wait for the health route."""
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
        """Return the number of open file descriptors of the server."""
        assert self.process
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def kill(self) -> None:
        """Kill the server with SIGKILL, like a crash."""
        assert self.process
        self.process.kill()
        self.process.wait()
        self.log.close()


@contextlib.contextmanager
def served(runs: Path, data: Path | None = None) -> Iterator[Server]:
    """Yield a server started with a low limit of file descriptors and one process for fields; stop it afterwards."""
    server = Server(runs, descriptors=(256, 4096), data=data)
    server.environment["DML_FIELD_WORKERS"] = "1"  # a second process costs two seconds of CPU time
    server.start()
    try:
        yield server
    finally:
        server.kill()
