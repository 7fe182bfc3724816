"""Worker processes that compute fields for the server, so that concurrent users do not contend for the GIL.

`python -m pages.shared.server.worker_pool MODULE FD` runs one worker. It reads requests from the socket with file
descriptor FD (each a uint32 length and JSON), writes the results of MODULE.answer (a uint32 length and bytes), and
exits when the socket closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TOGETHER = 0.1  # two requests from different sockets within this number of seconds count as concurrent
MOST_BYTES = 1 << 24  # of one answer
# minimum number of seconds between two replacements, so that a request that crashes workers does not occupy all cores
REST = 2.0


class Worker:
    """Worker process and its socket. The process computes one response at a time by calling `module.answer`."""

    def __init__(self, module: str) -> None:
        self.module = module

    async def start(self) -> None:
        """Start the process and wait until it has loaded `module`."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "pages.shared.server.worker_pool", self.module, str(theirs.fileno())]
        alone = os.environ | {"OMP_NUM_THREADS": "1"}  # one thread per process, because there is one worker per core
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=alone, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        self.reader, self.writer = await asyncio.open_connection(sock=ours, limit=MOST_BYTES)
        await self.ask("{}")

    async def ask(self, question: str) -> bytes:
        """Send a request (JSON) and return the response."""
        data = question.encode()
        self.writer.write(struct.pack("<I", len(data)) + data)
        (length,) = struct.unpack("<I", await self.reader.readexactly(4))
        return await self.reader.readexactly(length)

    def stop(self) -> None:
        """Close the socket and kill the process."""
        if hasattr(self, "writer"):
            self.writer.close()
        self.process.kill()
        self.process.wait()


class WorkerPool:
    """Pool of worker processes, empty until `start`.

    A worker that has died is replaced at the next request. Without workers the server computes all responses itself.

    Args:
        module: Name of the module whose `answer` the workers call.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self.workers: set[Worker] = set()
        self._last: tuple[int, float] = (0, 0.0)
        self._size, self._rested = 0, 0.0
        self._coming: asyncio.Task[None] | None = None

    async def start(self, size: int | None = None) -> None:
        """Start `size` workers. The default is $DML_FIELD_WORKERS, else one per core that this process may use."""
        self._idle: asyncio.Queue[Worker | None] = asyncio.Queue()
        asked = os.environ.get("DML_FIELD_WORKERS", "")
        self._size = size or max(1, int(asked) if asked.isdecimal() else len(os.sched_getaffinity(0)))
        for _ in range(self._size):
            await self._add()

    async def _add(self) -> None:
        worker = Worker(self.module)
        try:
            await worker.start()
        except BaseException:  # the worker died while loading, or the server is shutting down
            worker.stop()
            raise
        self.workers.add(worker)
        self._idle.put_nowait(worker)

    def _tend(self) -> None:
        """Remove dead workers and collect their exit statuses, and start a replacement for one of them."""
        for worker in [worker for worker in self.workers if worker.process.poll() is not None]:
            self._lose(worker)
        now = time.monotonic()
        if len(self.workers) < self._size and now > self._rested and (self._coming is None or self._coming.done()):
            self._rested = now + REST
            self._coming = asyncio.create_task(self._replace())

    async def _replace(self) -> None:
        # errors are ignored, because the next request tries again to start a replacement
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._add()

    def _lose(self, worker: Worker) -> None:
        self.workers.discard(worker)
        worker.stop()
        if not self.workers:
            # wake up the requests that wait for an idle worker; they find that none is left
            self._idle.put_nowait(None)

    def crowded(self, who: int) -> bool:
        """Return True if a socket other than `who` sent the previous request and did so within TOGETHER seconds."""
        now = time.monotonic()
        others, self._last = self._last[0] != who and now - self._last[1] < TOGETHER, (who, now)
        return others

    async def ask(self, question: str) -> bytes | None:
        """Return the response of the next idle worker; None if there are no workers or the worker dies.

        While there are workers, requests wait for an idle one: if the server computed a response itself, it would
        deliver those of the workers late.
        """
        self._tend()
        worker = None
        while worker not in self.workers:  # the queue may still contain dead workers
            if not self.workers:
                return None
            worker = await self._idle.get()
            if worker is None and not self.workers:  # the last worker died; wake up the next waiting request too
                self._idle.put_nowait(None)
        assert worker is not None
        try:
            answer = await worker.ask(question)
        # the worker died, or the request was cancelled; in both cases the worker cannot be reused
        except BaseException as error:
            self._lose(worker)
            if isinstance(error, (asyncio.IncompleteReadError, ConnectionError)):
                return None
            raise
        self._idle.put_nowait(worker)
        return answer

    def stop(self) -> None:
        """Kill all workers."""
        self._size = 0
        if self._coming is not None:
            self._coming.cancel()
        while self.workers:
            self.workers.pop().stop()


def _serve(module: str, connection: socket.socket) -> None:
    answer = importlib.import_module(module).answer
    stream = connection.makefile("rb")
    while head := stream.read(4):
        reply = answer(json.loads(stream.read(struct.unpack("<I", head)[0])))
        connection.sendall(struct.pack("<I", len(reply)) + reply)


if __name__ == "__main__":
    # Ctrl+C stops the server; this process ends when the server closes the socket
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
