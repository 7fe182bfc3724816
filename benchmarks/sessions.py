"""Many visitors on one server: 100 sessions moving a slider once a second, 32 sessions dragging at 60 Hz.

Each visitor is a real Streamlit session (its page has run) with a field socket of its own, driven as the component
drives it: one request in flight, the newest wins, coarser grids once answers get slow, the fine figure at rest. A
slider move is five requests in 80 ms and the rest; its time is from the first request to the last answer. The rival, in
the same run: 100 sessions that rerun a page of one slider and one number (benchmarks/empty_rerun) once a second.

With --browse the sessions open ten pages one after another instead, a second apart, from the moment a fresh server
listens (cold), and again when all of them have been through (warm); the server's CPU a page is told too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import tempfile
import time
from pathlib import Path

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.harness import EMPTY_RERUN, Server, command_line, memory, pid_of, processor_seconds, report, served
from pages.shared.plane.state import Scene
from pages.shared.server.wire import unpack

FINE, COARSE, RESTING, MODEST, SLOW = 81, 41, 201, 101, 0.024  # as in assets/shared/plane/plane.js

PAGES = ("fields", "compare", "charges", "truth", "data", "train", "runs", "studies", "gallery", "published")


class Visitor:
    """One session: Streamlit's socket, and the field's."""

    def __init__(self, address: str) -> None:
        self.address = address.replace("http", "ws")
        self.trip, self.scene = 0.0, Scene().to_json()

    async def arrive(self, fields: bool) -> None:
        """Open the page and wait until its script has run."""
        self.page = await connect(f"{self.address}/_stcore/stream", subprotocols=["streamlit"], max_size=None)
        await self.rerun()
        self.field = await connect(f"{self.address}/api/field", max_size=None) if fields else None

    async def rerun(self, page: str = "") -> float:
        """Seconds of one rerun of a page, by its name in the address."""
        start, message = time.perf_counter(), BackMsg()
        message.rerun_script.query_string = ""
        message.rerun_script.page_name = page
        await self.page.send(message.SerializeToString())
        while True:
            answer = ForwardMsg()
            answer.ParseFromString(await self.page.recv())
            if answer.WhichOneof("type") == "script_finished":
                return time.perf_counter() - start

    async def ask(self, n: int, settle: bool = False) -> float:
        """Seconds of one field."""
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
        """Seconds from the first of five moves in 80 ms to the figure at rest."""
        start = time.perf_counter()
        for i in range(5):
            self.scene["hyper"]["m1"] = -2.3 + 0.01 * i
            await self.ask(COARSE if self.trip > SLOW else FINE)
            await asyncio.sleep(max(0.0, start + 0.016 * (i + 1) - time.perf_counter()))
        await self.ask(MODEST if self.trip > SLOW else RESTING, settle=True)
        return time.perf_counter() - start

    async def drag(self, seconds: float) -> tuple[int, list[float]]:
        """Fields received while the pointer moves 60 times a second, and the seconds of each."""
        times: list[float] = []
        start = time.perf_counter()
        while (now := time.perf_counter() - start) < seconds:
            self.scene["anchor"] = [0.3 + 0.5 * math.cos(3 * now), 0.5 * math.sin(3 * now)]
            times.append(await self.ask(COARSE if self.trip > SLOW else FINE))
            frame = math.ceil((time.perf_counter() - start) * 60) / 60  # the next frame of the pointer
            await asyncio.sleep(max(0.0, start + frame - time.perf_counter()))
        return len(times), times


async def once_a_second(visitors: list[Visitor], act: str, seconds: int) -> list[float]:
    """Every visitor acts once a second, evenly spread over it; milliseconds of each act."""

    async def one(visitor: Visitor, offset: float) -> list[float]:
        start, times = time.perf_counter() + offset, []
        for k in range(seconds):
            await asyncio.sleep(max(0.0, start + k - time.perf_counter()))
            times.append(await getattr(visitor, act)())
        return times

    spread = [one(v, i / len(visitors)) for i, v in enumerate(visitors)]
    return [1000 * t for times in await asyncio.gather(*spread) for t in times]


async def browsing(visitors: list[Visitor], pause: float = 1.0) -> list[float]:
    """Every visitor opens all pages, each beginning with another one; milliseconds of each opening."""

    async def one(visitor: Visitor, first: int) -> list[float]:
        await asyncio.sleep(pause * first / len(visitors))
        times = []
        for number in range(len(PAGES)):
            times.append(await visitor.rerun(PAGES[(first + number) % len(PAGES)]))
            await asyncio.sleep(pause)
        return times

    visits = await asyncio.gather(*(one(visitor, number) for number, visitor in enumerate(visitors)))
    return [1000 * seconds for times in visits for seconds in times]


async def browse(server: Server, arguments: argparse.Namespace) -> None:
    """Cold and warm, of a server that has just begun to listen."""
    visitors = [Visitor(server.url) for _ in range(arguments.sessions)]
    pid = pid_of(server)
    before = processor_seconds(pid)
    await asyncio.gather(*(visitor.arrive(fields=False) for visitor in visitors))
    for name in ("cold", "warm"):
        times = await browsing(visitors)
        used, before = processor_seconds(pid) - before, processor_seconds(pid)
        busy = f"CPU {1000 * used / len(times):.0f} ms a page"
        report(f"{len(visitors)} sessions, {len(PAGES)} pages, {name}", times, busy)


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
    print(f"memory {each / 2**20:.2f} MiB a session, server {held / 2**20:.0f} MiB")

    dragging = visitors[: arguments.dragging]
    drags = await asyncio.gather(*(v.drag(arguments.seconds) for v in dragging))
    rates = np.array([count for count, _ in drags]) / arguments.seconds
    report(f"{len(dragging)} sessions dragging at 60 Hz", [1000 * t for _, times in drags for t in times])
    print(f"fields a second and session: least {rates.min():.1f}, median {np.median(rates):.1f}")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--dragging", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--browse", action="store_true", help="open pages instead of moving sliders")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        if arguments.browse:
            with served(runs) as (server,):
                asyncio.run(browse(server, arguments))
        else:
            with served(runs, EMPTY_RERUN, rest=15) as (server, rival):
                asyncio.run(measure(server, rival, arguments))


if __name__ == "__main__":
    main()
