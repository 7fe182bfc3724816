"""The app on this machine: an app that serves a given run store is found, or started so that it survives this process.

`/api/ready?store=ID` of an app responds 409 if the app serves another run store than the one with this id.
"""

from __future__ import annotations

import hashlib
import shlex
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path

from dmlcore.jobs import servers
from dmlcore.storage import locks
from dmlcore.storage.home import HOME

ADDRESS = "127.0.0.1"
PORTS = range(8501, 8521)  # ports on which an app is searched for or started, in this order
START_TIMEOUT = 120.0  # seconds that an app may take until it is ready
POLL_INTERVAL = 0.2
LOCK, LOG = ".app.lock", ".app.log"  # files in the run store: lock of the process that starts an app; output of the app
TAIL = 1000  # number of characters of the output that an error message shows


class AppError(RuntimeError):
    """Error for an app that cannot be started; the message gives the reason and what to do."""


@dataclass(frozen=True)
class LocalApp:
    """An app that is ready for visitors of this machine.

    Attributes:
        port: Port that it listens on.
        process: Process id if this call has started the app, else None.
    """

    port: int
    process: int | None = None

    @property
    def url(self) -> str:
        """Address of the app without a trailing slash."""
        return url_of(self.port)


def url_of(port: int) -> str:
    """Return the address of an app on this machine."""
    return f"http://{ADDRESS}:{port}"


def store_id(root: Path) -> str:
    """Return a digest of the path of a run store, 16 hexadecimal digits."""
    return hashlib.sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def find(root: Path, ports: Sequence[int] = PORTS) -> LocalApp | None:
    """Return a running app that serves the run store `root`, or None.

    An app that is starting is waited for, up to START_TIMEOUT seconds.
    """
    deadline = time.monotonic() + START_TIMEOUT
    for port in ports:
        while (answer := _ask(port, root)) == "starting" and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL)
        if answer == "ready":
            return LocalApp(port)
    return None


def ensure(root: Path, ports: Sequence[int] = PORTS) -> LocalApp:
    """Return an app that serves the run store `root`; start one in the background if none is running.

    The app listens on this machine only, on the first free port, and keeps running when this process ends.

    Raises:
        AppError: The app cannot be started, for example because only the library is installed.
    """
    if (app := find(root, ports)) is not None:
        return app
    _require_app(root, ports)
    root.mkdir(parents=True, exist_ok=True)
    try:
        with locks.ProcessLock(root / LOCK, wait=START_TIMEOUT):
            return find(root, ports) or _start(root, ports)
    except (locks.Busy, OSError) as error:
        raise AppError(f"The app could not be started ({error}). Start it with: {command(root, ports[0])}") from None


def command(root: Path, port: int) -> str:
    """Return the command line that starts the app by hand in a checkout of the repository."""
    return f"dml serve --port {port} --runs {shlex.quote(str(root))}"


def _require_app(root: Path, ports: Sequence[int]) -> None:
    if not servers.APP.is_file():
        raise AppError(
            f"There is no app in {HOME}, because the installed library has no pages. In a checkout of the repository, "
            f"run: {command(root, ports[0])}"
        )
    if find_spec("streamlit") is None:
        raise AppError(
            f"The app needs the package streamlit, which {sys.executable} does not have. Run `make run` in {HOME} "
            "once, which installs it"
        )


def _start(root: Path, ports: Sequence[int]) -> LocalApp:
    """Start the app on the first free port and wait until it is ready; end it if it is not ready in time."""
    port = next(filter(_is_free, ports), None)
    if port is None:
        raise AppError(
            f"The ports {ports[0]} to {ports[-1]} are in use. Start the app on another one: {command(root, 8600)}"
        )
    log = root / LOG
    log.write_bytes(b"")
    _, *arguments = servers.server_command(ADDRESS, port)
    from dmlcore.storage.task import spawn_detached  # imported late: the server that answers need not load pydantic

    process = spawn_detached(arguments, log, {"DML_RUNS": str(root)})
    deadline = time.monotonic() + START_TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        if _ask(port, root) == "ready":
            return LocalApp(port, process.pid)
        time.sleep(POLL_INTERVAL)
    if (status := process.poll()) is None:
        process.terminate()
    ended = f"was not ready after {START_TIMEOUT:.0f} s" if status is None else f"ended with status {status}"
    tail = log.read_text(errors="replace")[-TAIL:].strip()
    raise AppError(f"The app {ended}. Its output in {log} ends with:\n{tail}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def _ask(port: int, root: Path) -> str:
    """Return "ready", "starting" or, if no app listens on the port or it serves another run store, ""."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy could not reach this machine
    try:
        with direct.open(f"{url_of(port)}/api/ready?store={store_id(root)}", timeout=5.0) as response:
            return "ready" if response.read(100) == b"ready" else ""
    except urllib.error.HTTPError as error:
        return "starting" if error.code == 503 and error.read(100).startswith(b"starting") else ""
    except (OSError, ValueError, HTTPException):  # refused, no response in time, or another protocol
        return ""
