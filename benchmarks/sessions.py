"""Many user sessions on one server: 100 that move a slider once per second, or 32 that drag at 60 Hz.

Each session is a real Streamlit session (its page has run) with its own field socket, used as the browser component
uses it: it sends one request at a time, newer requests replace waiting ones, grids become coarser when responses are
slow, and the fine figure is requested at rest. A slider move is five requests in 80 ms followed by the figure at rest;
it is timed from the first request to the last response. The baseline is 100 sessions that rerun a page of one slider
and one number (benchmarks/empty_rerun) once per second.

With --browse the sessions open ten pages one after another instead, one second apart: first when `dml serve` reports
that it is ready (fresh), and again when all sessions have opened all pages (warm). --workers N starts N servers, over
which the sessions are spread evenly, as a proxy does (docs/reverse-proxy.md). The processor time per page is reported
as well.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from benchmarks.browser import EMPTY_RERUN, Server, pid_of, served
from benchmarks.harness import ROOT, command_line, memory, report, seconds_of, started_by, verdict
from pages.shared.plane.state import Scene
from pages.shared.server.wire import unpack

FINE, COARSE, RESTING, MODEST, SLOW = 81, 41, 201, 101, 0.024  # copies of constants in assets/shared/plane/plane.js

GOALS = {"fresh": 5.0, "warm": 1.5}  # goals in seconds for the 95th percentile of the time to open a page
PATIENCE = 60.0  # timeout in seconds after which a page that has not loaded counts as failed
TO_BE_READY = 300.0  # seconds
PAGES = (
    "fields",
    "compare",
    "charges",
    "errata",
    "data",
    "settings",
    "runs",
    "studies",
    "neighbours",
    "published_results",
)


@dataclass(frozen=True)
class Opening:
    """Attempt to open a page, with its duration in seconds; `failure` is the error, or "" if it succeeded."""

    page: str
    seconds: float
    failure: str = ""


class Visitor:
    """User session without a browser, with the WebSockets of Streamlit and of the field."""

    def __init__(self, address: str) -> None:
        self.address = address.replace("http", "ws")
        self.trip, self.scene = 0.0, Scene().to_json()
        self.lost = False

    async def arrive(self, fields: bool) -> None:
        """Start a session and wait until its script has run; if `fields`, open the field socket too."""
        await self.connect()
        await self.rerun()
        self.field = await connect(f"{self.address}/api/field", max_size=None) if fields else None

    async def connect(self) -> None:
        """Connect Streamlit's WebSocket, which starts a session."""
        stream = f"{self.address}/_stcore/stream"  # send no pings, because browsers send none
        self.page = await connect(stream, subprotocols=["streamlit"], max_size=None, ping_interval=None)

    async def rerun(self, page: str = "") -> float:
        """Rerun the script for a page, given by its name in the URL; return the seconds until it has finished."""
        start, message = time.perf_counter(), BackMsg()
        message.rerun_script.query_string = ""
        message.rerun_script.page_name = page
        await self.page.send(message.SerializeToString())
        while True:
            answer = ForwardMsg()
            answer.ParseFromString(await self.page.recv())
            if answer.WhichOneof("type") == "script_finished":
                return time.perf_counter() - start

    async def open(self, page: str) -> Opening:
        """Open a page, given by its name in the URL; if the session was lost before, start a new one first."""
        start, failure = time.perf_counter(), ""
        try:
            async with asyncio.timeout(PATIENCE):
                if self.lost:
                    await self.connect()
                await self.rerun(page)
                self.lost = False
        except (OSError, TimeoutError, WebSocketException) as error:
            self.lost, failure = True, f"{type(error).__name__}: {error}".rstrip(": ")
        return Opening(page, time.perf_counter() - start, failure)

    async def ask(self, n: int, settle: bool = False) -> float:
        """Request a field on n x n nodes; return the seconds until the response."""
        assert isinstance(self.field, ClientConnection)
        start = time.perf_counter()
        await self.field.send(
            json.dumps({"id": 1, "scene": self.scene, "n": n, "scale": 4.0, "reference": 2.0, "settle": settle})
        )
        answer = unpack(await self.field.recv())
        assert "forces" in answer
        took = time.perf_counter() - start
        self.trip = 0.8 * self.trip + 0.2 * took
        return took

    async def move_a_slider(self) -> float:
        """Send the requests of a slider move: five in 80 ms, then one for the figure at rest.

        Returns the seconds from the first request to the last response.
        """
        start = time.perf_counter()
        for i in range(5):
            self.scene["hyper"]["m1"] = -2.3 + 0.01 * i
            await self.ask(COARSE if self.trip > SLOW else FINE)
            await asyncio.sleep(max(0.0, start + 0.016 * (i + 1) - time.perf_counter()))
        await self.ask(MODEST if self.trip > SLOW else RESTING, settle=True)
        return time.perf_counter() - start

    async def drag(self, seconds: float) -> tuple[int, list[float]]:
        """Drag with 60 pointer positions per second; return the number of fields received and the seconds for each."""
        times: list[float] = []
        start = time.perf_counter()
        while (now := time.perf_counter() - start) < seconds:
            self.scene["anchor"] = [0.3 + 0.5 * math.cos(3 * now), 0.5 * math.sin(3 * now)]
            times.append(await self.ask(COARSE if self.trip > SLOW else FINE))
            frame = math.ceil((time.perf_counter() - start) * 60) / 60  # time of the next pointer position
            await asyncio.sleep(max(0.0, start + frame - time.perf_counter()))
        return len(times), times


async def once_a_second(visitors: list[Visitor], act: str, seconds: int) -> list[float]:
    """Call the method `act` of each session once per second, evenly staggered; return the milliseconds per call."""

    async def one(visitor: Visitor, offset: float) -> list[float]:
        start, times = time.perf_counter() + offset, []
        for k in range(seconds):
            await asyncio.sleep(max(0.0, start + k - time.perf_counter()))
            times.append(await getattr(visitor, act)())
        return times

    spread = [one(v, i / len(visitors)) for i, v in enumerate(visitors)]
    return [1000 * t for times in await asyncio.gather(*spread) for t in times]


async def browsing(visitors: list[Visitor], pause: float = 1.0) -> list[Opening]:
    """Open all pages in every session, starting with a different page in each; return the attempts.

    `pause` is the number of seconds between two pages of a session.
    """

    async def one(visitor: Visitor, first: int) -> list[Opening]:
        await asyncio.sleep(pause * first / len(visitors))
        openings = []
        for number in range(len(PAGES)):
            openings.append(await visitor.open(PAGES[(first + number) % len(PAGES)]))
            await asyncio.sleep(pause)
        return openings

    visits = await asyncio.gather(*(one(visitor, number) for number, visitor in enumerate(visitors)))
    return [opening for openings in visits for opening in openings]


async def browse(addresses: Sequence[str], serving: int, arguments: argparse.Namespace) -> None:
    """Print the times of opening pages on servers that have just become ready (fresh), and again afterwards (warm).

    Args:
        addresses: Addresses of the servers.
        serving: ID of the process that started the servers.
        arguments: Parsed command line.
    """
    visitors = [Visitor(addresses[number % len(addresses)]) for number in range(arguments.sessions)]
    for visitor in visitors:
        visitor.lost = True  # mark as lost, so that the session connects when it opens its first page
    for name, goal in GOALS.items():
        before, own = seconds_of(started_by(serving)), time.process_time()
        openings = await browsing(visitors)
        used, own = seconds_of(started_by(serving)) - before, time.process_time() - own
        failures = [opening.failure for opening in openings if opening.failure]
        times = [1000 * opening.seconds for opening in openings]
        busy = f"CPU per page {1000 * used / len(times):.0f} ms, of the client {1000 * own / len(times):.0f} ms"
        report(f"{len(visitors)} sessions, {len(addresses)} servers, {len(PAGES)} pages, {name}", times, busy)
        reached = not failures and float(np.percentile(times, 95)) <= 1000 * goal
        print(f"{verdict(reached)}: p95 at most {goal:g} s, no failure ({len(failures)} of {len(times)})")
        for failure in sorted(set(failures)):
            print(f"  {failures.count(failure)} times {failure}")
    await _each(visitors[0], serving, openings)


async def _each(visitor: Visitor, serving: int, openings: Sequence[Opening], times: int = 5) -> None:
    """Print one line per page, with the times under load and the processor time per opening by a single session."""
    for page in PAGES:
        before = seconds_of(started_by(serving))
        for _ in range(times):
            await visitor.open(page)
        used = 1000 * (seconds_of(started_by(serving)) - before) / times
        of_page = [opening for opening in openings if opening.page == page]
        failed = sum(bool(opening.failure) for opening in of_page)
        report(f"  {page}", [1000 * opening.seconds for opening in of_page], f"CPU {used:.0f} ms, {failed} failures")


@contextlib.contextmanager
def crowd_served(runs: Path, workers: int) -> Iterator[tuple[list[str], int]]:
    """Run `dml serve --workers N` over the runs in a folder, and wait until all servers are ready.

    Yields the addresses of the servers and the ID of the process that started them.
    """
    port = _ports_in_a_row(workers)
    addresses = [f"http://127.0.0.1:{port + number}" for number in range(workers)]
    command = [sys.executable, "-m", "dmlcore", "serve", "--workers", str(workers), "--port", str(port)]
    with open(runs.parent / "serve.log", "ab") as log:
        process = subprocess.Popen([*command, "--runs", str(runs)], cwd=ROOT, stdout=log, stderr=log)
    try:
        began = time.monotonic()
        while not all(map(_is_ready, addresses)):
            if process.poll() is not None or time.monotonic() - began > TO_BE_READY:
                raise RuntimeError(f"the server did not start: {(runs.parent / 'serve.log').read_text()[-2000:]}")
            time.sleep(0.2)
        print(f"ready after {time.monotonic() - began:.1f} s, CPU {seconds_of(started_by(process.pid)):.1f} s")
        yield addresses, process.pid
    finally:
        process.terminate()
        process.wait()


def _is_ready(address: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/api/ready", timeout=60) as answer:
        return bool(answer.status == 200)
    return False


def _ports_in_a_row(count: int) -> int:
    """Return the first of `count` consecutive free ports."""
    while True:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, OverflowError):
            sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
            sockets[0].bind(("127.0.0.1", 0))
            first = int(sockets[0].getsockname()[1])
            for number, each in enumerate(sockets[1:], 1):
                each.bind(("127.0.0.1", first + number))
            return first


async def gathered(server: Server, count: int, fields: bool) -> list[Visitor]:
    visitors = [Visitor(server.url) for _ in range(count)]
    for visitor in visitors:
        await visitor.arrive(fields)
    return visitors


async def measure(server: Server, rival: Server, arguments: argparse.Namespace) -> None:
    empty = await gathered(rival, arguments.sessions, fields=False)
    report(f"{len(empty)} sessions, empty rerun at 1 Hz", await once_a_second(empty, "rerun", arguments.seconds))
    for visitor in empty:
        await visitor.page.close()

    first = await gathered(server, 1, fields=True)
    await first[0].move_a_slider()
    pid = pid_of(server)
    before = memory(pid=pid)
    visitors = await gathered(server, arguments.sessions, fields=True)
    times = await once_a_second(visitors, "move_a_slider", arguments.seconds)
    report(f"{len(visitors)} sessions, slider moved at 1 Hz", times)
    held = memory(pid=pid)
    each = (held - before) / len(visitors)
    print(f"memory {each / 2**20:.2f} MiB per session, server {held / 2**20:.0f} MiB")

    dragging = visitors[: arguments.dragging]
    drags = await asyncio.gather(*(v.drag(arguments.seconds) for v in dragging))
    rates = np.array([count for count, _ in drags]) / arguments.seconds
    report(f"{len(dragging)} sessions dragging at 60 Hz", [1000 * t for _, times in drags for t in times])
    print(f"fields per second and session: minimum {rates.min():.1f}, median {np.median(rates):.1f}")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--dragging", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--browse", action="store_true", help="open pages instead of moving sliders")
    parser.add_argument("--workers", type=int, default=1, help="number of servers, with --browse")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        if arguments.browse:
            with crowd_served(runs, arguments.workers) as (addresses, process):
                asyncio.run(browse(addresses, process, arguments))
        else:
            with served(runs, EMPTY_RERUN, rest=15) as (server, rival):
                asyncio.run(measure(server, rival, arguments))


if __name__ == "__main__":
    main()
