"""Worker processes give the same answers as the server, and answers continue without them, only more slowly."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pages.shared.plane.service import WORKERS, answer
from pages.shared.server.worker_pool import WorkerPool

pytestmark = pytest.mark.processes

QUESTIONS = [{"id": k, "scene": {"loss": "ranking", "anchor": [k / 10, 0]}, "n": 41} for k in range(6)]


def alone(coroutine):
    """Run a coroutine in a thread, because the browser tests keep an event loop running in the main thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


async def ask(pool):
    return await asyncio.wait_for(asyncio.gather(*(pool.ask(json.dumps(q)) for q in QUESTIONS)), timeout=180)


@pytest.fixture(scope="module")
def one_pool():
    """Return the answers of one pool of two workers in several situations, by name; a worker takes 1 s to start."""

    async def test(pool):
        found = {"first": await ask(pool)}
        first, second = pool.workers
        first.process.kill()
        found["one killed"] = await ask(pool)
        for worker in list(pool.workers):  # idle workers
            os.kill(worker.process.pid, signal.SIGKILL)
        found["none left"] = await ask(pool)
        deadline = time.monotonic() + 180
        while len(pool.workers) < 2 and time.monotonic() < deadline:
            await ask(pool)
            await asyncio.sleep(0.1)
        found["back"] = await ask(pool)
        found["gone"] = [worker.process.returncode for worker in (first, second)]
        task = asyncio.create_task(pool.ask(json.dumps({"id": 99, "n": 201})))
        await asyncio.sleep(0)
        task.cancel()
        found["after one that nobody waits for"] = await pool.ask(json.dumps(QUESTIONS[3]))
        worker = next(iter(pool.workers))
        worker.writer.close()
        return found | {"ends with": await asyncio.to_thread(worker.process.wait, 180)}

    async def main():
        pool = WorkerPool(WORKERS.module)
        await pool.start()
        try:
            return await test(pool)
        finally:
            pool.stop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pages.shared.server.worker_pool.REST", 0.1)
        patch.setattr(os, "sched_getaffinity", lambda _: range(5))
        patch.setenv("DML_FIELD_WORKERS", "2")  # instead of one worker per core
        return alone(main())


def test_a_crew_answers_as_the_server_does(one_pool):
    assert one_pool["first"] == [answer(q) for q in QUESTIONS]


def test_killed_workers_are_missed_by_nobody_and_come_back(one_pool):
    expected = [answer(q) for q in QUESTIONS]
    assert one_pool["one killed"].count(None) <= 1
    for when in ("one killed", "none left"):
        assert all(a == e for a, e in zip(one_pool[when], expected, strict=True) if a), when
    assert one_pool["back"] == expected
    assert one_pool["gone"] == [-signal.SIGKILL] * 2  # waited for, so that there are no zombies


def test_an_answer_nobody_waits_for_is_not_given_to_the_next(one_pool):
    assert one_pool["after one that nobody waits for"] == answer(QUESTIONS[3])


def test_without_workers_the_server_answers_itself():
    assert alone(WorkerPool(WORKERS.module).ask("{}")) is None


def test_two_sockets_at_once_are_a_crowd():
    pool = WorkerPool(WORKERS.module)
    assert not pool.crowded(1)
    assert not pool.crowded(1)
    assert pool.crowded(2)
    assert pool.crowded(1)


def test_workers_end_with_their_socket(one_pool):
    assert one_pool["ends with"] == 0
