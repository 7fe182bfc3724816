"""Supervisor of app servers: child processes with one port each, which are restarted after a crash.

The session of a user is kept in the memory of one server, so several servers need a reverse proxy with sticky sessions
(docs/reverse-proxy.md). Runs, jobs and caches are files, which all servers share.
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
LONGEST_PAUSE = 30.0  # longest delay before a restart, in seconds
STEADY = 60.0  # seconds of uptime after which the restart delay returns to its minimum
GRACE = 10.0  # seconds between SIGTERM and SIGKILL
POLL_INTERVAL = 0.2


@dataclass
class Server:
    """A supervised server process on one port, and the earliest time of its next start."""

    port: int
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = field(default=0.0)
    due: float = 0.0

    def keep_running(self, address: str, environment: Mapping[str, str]) -> bool:
        """Start the server if it is due; after a crash, schedule its restart.

        The delay doubles with each crash, up to LONGEST_PAUSE. Returns False if the server failed soon after its first
        start. In this case a setting is probably wrong, and the server has printed the reason.
        """
        now = time.monotonic()
        if self.process is not None and (code := self.process.poll()) is not None:
            if code > 0 and not self.pause and now - self.started < STEADY:
                return False
            self.pause = 1.0 if now - self.started > STEADY else min(LONGEST_PAUSE, max(1.0, 2 * self.pause))
            self.process, self.due = None, now + self.pause
            _say(f"the server on port {self.port} exited with status {code}; restarting in {self.pause:.0f} s")
        if self.process is None and now >= self.due:
            self.process = subprocess.Popen(
                server_command(address, self.port), cwd=HOME, env=dict(environment), stdin=subprocess.DEVNULL
            )
            self.started = now
        return True


def server_command(address: str, port: int) -> list[str]:
    """Return the command line that starts one server."""
    server = ["--server.headless", "true", "--server.address", address, "--server.port", str(port)]
    return [sys.executable, "-m", "streamlit", "run", str(APP), *server]


def serve(address: str, ports: Iterable[int], settings: Mapping[str, str], *, token: str) -> int:
    """Run one server per port until SIGTERM or Ctrl-C.

    Args:
        address: Address to listen on.
        ports: Ports, one for each server.
        settings: Additional environment variables for the servers.
        token: Access token of all servers. It is used if $DML_TOKEN is "auto", or if $DML_TOKEN is unset and `address`
            is not local.

    Returns:
        Exit status: 0, or 1 if the app is not installed or the first start of a server failed.
    """
    if not APP.is_file():
        _say(
            f"there is no app in {HOME}; run this command in a checkout of the repository (the installed library "
            "has no pages)"
        )
        return 1
    environment = os.environ | settings
    beyond = address not in ("127.0.0.1", "localhost", "::1")
    if environment.get("DML_TOKEN", "auto" if beyond else "") == "auto":
        # If the value remained "auto", each server would generate a different token at each start.
        environment["DML_TOKEN"] = token
    servers = [Server(port) for port in ports]
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    try:
        while not stopped.wait(POLL_INTERVAL):
            if not all(server.keep_running(address, environment) for server in servers):
                return 1
    finally:
        _end([server.process for server in servers if server.process is not None])
    return 0


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Send SIGTERM to all processes, and SIGKILL to those that are still running GRACE seconds later."""
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
