"""Many user sessions on one server: 100 that open ten pages one after another, one second apart.

Each session is a real Streamlit session without a browser. The pages are opened first when `dml serve` reports that it
is ready (fresh), and again when all sessions have opened all pages (warm). --workers N starts N servers, over which the
sessions are spread evenly, as a proxy does (docs/reverse-proxy.md). The rival is as many sessions that rerun a page of
one slider and one number (benchmarks/empty_rerun) once per second.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from benchmarks.harness import (
    EMPTY_RERUN,
    command_line,
    free_ports,
    report,
    running,
    seconds_of,
    served,
    started_by,
    verdict,
)

GOALS = {"fresh": 5.0, "warm": 1.5}  # goals in seconds for the 95th percentile of the time to open a page
PATIENCE = 60.0  # timeout in seconds after which a page that has not loaded counts as failed
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
    """User session without a browser, with Streamlit's WebSocket; it connects when it opens its first page."""

    def __init__(self, address: str) -> None:
        self.address = address.replace("http", "ws")
        self.lost = True

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


async def browsing(visitors: list[Visitor], pages: Sequence[str] = PAGES, pause: float = 1.0) -> list[Opening]:
    """Open all pages in every session, starting with a different page in each; return the attempts.

    `pause` is the number of seconds between two pages of a session.
    """

    async def one(visitor: Visitor, first: int) -> list[Opening]:
        await asyncio.sleep(pause * first / len(visitors))
        openings = []
        for number in range(len(pages)):
            openings.append(await visitor.open(pages[(first + number) % len(pages)]))
            await asyncio.sleep(pause)
        return openings

    visits = await asyncio.gather(*(one(visitor, number) for number, visitor in enumerate(visitors)))
    return [opening for openings in visits for opening in openings]


async def browse(addresses: Sequence[str], serving: int, sessions: int, rival: float) -> None:
    """Print the times of opening pages on servers that have just become ready (fresh), and again afterwards (warm).

    Args:
        addresses: Addresses of the servers.
        serving: ID of the process that started the servers.
        sessions: Number of sessions.
        rival: Processor time of an empty rerun in milliseconds.
    """
    visitors = [Visitor(addresses[number % len(addresses)]) for number in range(sessions)]
    for name, goal in GOALS.items():
        openings, cpu = await measured(
            f"{sessions} sessions, {len(addresses)} servers, {name}", visitors, PAGES, serving
        )
        failures = [opening.failure for opening in openings if opening.failure]
        slow = float(np.percentile([opening.seconds for opening in openings], 95))
        reached = verdict(not failures and slow <= goal)
        print(f"CPU per page {cpu / rival:.1f} times that of an empty rerun")
        print(f"{reached}: p95 at most {goal:g} s, no failure ({len(failures)} of {len(openings)})")
        for failure in sorted(set(failures)):
            print(f"  {failures.count(failure)} times {failure}")
    await _each(visitors[0], serving, openings)


async def measured(
    name: str, visitors: list[Visitor], pages: Sequence[str], serving: int
) -> tuple[list[Opening], float]:
    """Open `pages` in every session and print the times; return the attempts and the CPU milliseconds per page."""
    before, own = seconds_of(started_by(serving)), time.process_time()
    openings = await browsing(visitors, pages)
    used, own = seconds_of(started_by(serving)) - before, time.process_time() - own
    cpu, own = 1000 * used / len(openings), 1000 * own / len(openings)
    words = f"CPU per page {cpu:.0f} ms, of the client {own:.0f} ms"
    report(name, [1000 * opening.seconds for opening in openings], words)
    return openings, cpu


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


async def rerun_empty(address: str, serving: int, sessions: int) -> float:
    """Print the times of the rival; return its processor time per rerun in milliseconds."""
    visitors = [Visitor(address) for _ in range(sessions)]
    await browsing(visitors, [""])  # load everything that the first page needs
    return (await measured(f"{sessions} sessions, empty rerun", visitors, [""] * len(PAGES), serving))[1]


def main() -> None:
    """Measure the rival, then the app."""
    parser = command_line(__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1, help="number of servers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        with served(runs, EMPTY_RERUN) as (address, process):
            rival = asyncio.run(rerun_empty(address, process, arguments.sessions))
        ports = free_ports(arguments.workers)
        addresses = [f"http://127.0.0.1:{port}" for port in ports]
        command = ["dmlcore", "serve", "--workers", str(arguments.workers), "--port", str(ports[0])]
        began = time.monotonic()
        ready = [f"{address}/api/ready" for address in addresses]
        with running([*command, "--runs", str(runs)], runs, ready) as process:
            print(f"ready after {time.monotonic() - began:.1f} s, CPU {seconds_of(started_by(process)):.1f} s")
            asyncio.run(browse(addresses, process, arguments.sessions, rival))


if __name__ == "__main__":
    main()
