"""Servers of the app as child processes: each on a port of its own, started again when it dies, ended together.

Sessions live in the memory of one server, so a proxy that sends a visitor to the same one every time stands before
several (docs/reverse-proxy.md); runs, jobs and caches are files, which all of them share.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dmlcore.storage.home import HOME

APP = HOME / "app.py"
LONGEST_PAUSE = 30.0  # seconds before a server that keeps dying is started again
STEADY = 60.0  # seconds after which a server has not "kept dying"
GRACE = 10.0  # seconds to end in order
LOOK = 0.2


@dataclass
class Server:
    """One server, and when it is to be started."""

    port: int
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = field(default=0.0)
    due: float = 0.0

    def look(self, address: str, environment: Mapping[str, str]) -> bool:
        """Start it if it is due; after a death it is due a little later each time, up to LONGEST_PAUSE.

        False where it gave up at its first start: a setting is wrong, which it has said.
        """
        now = time.monotonic()
        if self.process is not None and (code := self.process.poll()) is not None:
            if code > 0 and not self.pause and now - self.started < STEADY:
                return False
            self.pause = 1.0 if now - self.started > STEADY else min(LONGEST_PAUSE, max(1.0, 2 * self.pause))
            self.process, self.due = None, now + self.pause
            _say(f"the server on port {self.port} ended with {code}; it starts again in {self.pause:.0f} s")
        if self.process is None and now >= self.due:
            self.process = subprocess.Popen(
                command(address, self.port), cwd=HOME, env=dict(environment), stdin=subprocess.DEVNULL
            )
            self.started = now
        return True


def command(address: str, port: int) -> list[str]:
    """What starts one server."""
    server = ["--server.headless", "true", "--server.address", address, "--server.port", str(port)]
    return [sys.executable, "-m", "streamlit", "run", str(APP), *server]


def serve(address: str, ports: Iterable[int], settings: Mapping[str, str], *, token: str) -> int:
    """Serve until SIGTERM or Ctrl-C, and return 0; 1 where there is no app to serve.

    Returns 1 too where a server gives up at its first start.

    settings: variables of the environment for the servers. token: what all servers ask for, also after a restart,
    where $DML_TOKEN is "auto" or where it is unset and the address is reached by others.
    """
    if not APP.is_file():
        _say(f"there is no app in {HOME}: run this where the repository lies (the library alone brings no pages)")
        return 1
    environment = os.environ | settings
    beyond = address not in ("127.0.0.1", "localhost", "::1")
    if environment.get("DML_TOKEN", "auto" if beyond else "") == "auto":
        environment["DML_TOKEN"] = token  # "auto" would give each server a token of its own at each start
    servers = [Server(port) for port in ports]
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    try:
        while not stopped.wait(LOOK):
            if not all(server.look(address, environment) for server in servers):
                return 1
    finally:
        _end([server.process for server in servers if server.process is not None])
    return 0


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """SIGTERM to all, and SIGKILL to those that are still there after GRACE."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + GRACE
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
