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
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCREENSHOTS = Path(__file__).parent / "screenshots"
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
THEMES = ("light", "dark")
WIDTHS = (1440, 900)


def chromium_path() -> str | None:
    """Debian's Chromium, or None."""
    return shutil.which("chromium")


def free_port() -> int:
    """A TCP port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """The app as `make run` serves it, on a port of its own, with its runs in `runs`."""

    def __init__(self, runs: Path, port: int | None = None, script: Path = ROOT / "app.py") -> None:
        self.runs, self.port, self.script = runs, port or free_port(), script
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        """Start and wait for the health route."""
        command = [sys.executable, "-m", "streamlit", "run", str(self.script), "--server.headless=true"]
        self.log = open(self.runs.parent / f"server-{self.port}.log", "ab")  # noqa: SIM115 (closed in stop)
        self.process = subprocess.Popen(
            [*command, f"--server.port={self.port}"],
            cwd=ROOT,
            env=os.environ | {"DML_RUNS": str(self.runs)},
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        for _ in range(600):
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1):
                return self
            time.sleep(0.1)
        raise RuntimeError(f"the app did not start; see {self.log.name}")

    def kill(self) -> None:
        """kill -9, as a crash would."""
        assert self.process
        self.process.kill()
        self.process.wait()
        self.log.close()


@contextlib.contextmanager
def served(runs: Path) -> Iterator[Server]:
    """A started server, ended afterwards."""
    server = Server(runs).start()
    try:
        yield server
    finally:
        server.kill()
