"""Processes that answer fields beside the server's own, so that many hands at once are not one interpreter's work.

`python -m pages.shared.server.worker_pool MODULE FD` is such a process: it reads questions from its socket, each a
uint32 length and JSON, writes what MODULE.answer says as a uint32 length and bytes, and ends with the socket.
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
TOGETHER = 0.1  # seconds within which questions of two sockets count as a crowd
MOST_BYTES = 1 << 24  # of one answer
REST = 2.0  # seconds between two replacements: a question that kills its worker must not keep the cores busy


class Worker:
    """One process and the socket to it; it answers one question at a time, by `answer` of a module."""

    def __init__(self, module: str) -> None:
        self.module = module

    async def start(self) -> None:
        """Start the process; it loads while the server goes on."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "pages.shared.server.worker_pool", self.module, str(theirs.fileno())]
        alone = os.environ | {"OMP_NUM_THREADS": "1"}  # a process for each core
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=alone, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        self.reader, self.writer = await asyncio.open_connection(sock=ours, limit=MOST_BYTES)
        await self.ask("{}")

    async def ask(self, question: str) -> bytes:
        """The answer to a JSON question."""
        data = question.encode()
        self.writer.write(struct.pack("<I", len(data)) + data)
        (length,) = struct.unpack("<I", await self.reader.readexactly(4))
        return await self.reader.readexactly(length)

    def stop(self) -> None:
        """End the process."""
        if hasattr(self, "writer"):
            self.writer.close()
        self.process.kill()
        self.process.wait()


class WorkerPool:
    """The workers; none until `start`. One that dies is replaced at the next question; without any, the server answers
    all by itself. module: that whose `answer` they call."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.workers: set[Worker] = set()
        self._last: tuple[int, float] = (0, 0.0)
        self._size, self._rested = 0, 0.0
        self._coming: asyncio.Task[None] | None = None

    async def start(self, size: int | None = None) -> None:
        """Start `size` workers, by default $DML_FIELD_WORKERS, or else one for every core this process may use."""
        self._idle: asyncio.Queue[Worker | None] = asyncio.Queue()
        asked = os.environ.get("DML_FIELD_WORKERS", "")
        self._size = size or max(1, int(asked) if asked.isdecimal() else len(os.sched_getaffinity(0)))
        for _ in range(self._size):
            await self._add()

    async def _add(self) -> None:
        worker = Worker(self.module)
        try:
            await worker.start()
        except BaseException:  # died while it loaded, or the server ends
            worker.stop()
            raise
        self.workers.add(worker)
        self._idle.put_nowait(worker)

    def _tend(self) -> None:
        """Bury the dead, which leaves no zombie, and have one of them replaced."""
        for worker in [worker for worker in self.workers if worker.process.poll() is not None]:
            self._lose(worker)
        now = time.monotonic()
        if len(self.workers) < self._size and now > self._rested and (self._coming is None or self._coming.done()):
            self._rested = now + REST
            self._coming = asyncio.create_task(self._replace())

    async def _replace(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):  # the next question tries again
            await self._add()

    def _lose(self, worker: Worker) -> None:
        self.workers.discard(worker)
        worker.stop()
        if not self.workers:
            self._idle.put_nowait(None)  # for those who wait

    def crowded(self, who: int) -> bool:
        """Whether somebody else than socket `who` asked just now."""
        now = time.monotonic()
        others, self._last = self._last[0] != who and now - self._last[1] < TOGETHER, (who, now)
        return others

    async def ask(self, question: str) -> bytes | None:
        """The answer of the next idle worker; None if there are no workers, or if this one died over the question.

        The server itself answers nothing while workers do: an answer computed here would keep theirs waiting.
        """
        self._tend()
        worker = None
        while worker not in self.workers:  # the dead are still in the queue
            if not self.workers:
                return None
            worker = await self._idle.get()
            if worker is None and not self.workers:  # the last one died; the next in the queue shall know too
                self._idle.put_nowait(None)
        assert worker is not None
        try:
            answer = await worker.ask(question)
        except BaseException as error:  # died, or nobody waits for the answer any more: of no further use
            self._lose(worker)
            if isinstance(error, (asyncio.IncompleteReadError, ConnectionError)):
                return None
            raise
        self._idle.put_nowait(worker)
        return answer

    def stop(self) -> None:
        """End all workers."""
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the server's; its end closes our socket
    _serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
