"""Processes beside the server's own give the same answers, and their loss costs nothing but speed."""

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

QUESTIONS = [{"id": k, "scene": {"loss": "ranking", "anchor": [k / 10, 0]}, "n": 41} for k in range(6)]


def alone(coroutine):
    """Run it in a thread: the browser tests leave a running loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def run(test):
    """`test(pool)` with a pool of two, which is stopped afterwards."""

    async def main():
        pool = WorkerPool(WORKERS.module)
        await pool.start(2)
        try:
            return await test(pool)
        finally:
            pool.stop()

    return alone(main())


@pytest.fixture(scope="module")
def one_crew():
    """What one pool says in turn: all answers, the one after a question that nobody waits for, how a worker ends."""

    async def test(pool):
        answers = await asyncio.gather(*(pool.ask(json.dumps(q)) for q in QUESTIONS))
        task = asyncio.create_task(pool.ask(json.dumps({"id": 99, "n": 201})))
        await asyncio.sleep(0)
        task.cancel()
        next_answer = await pool.ask(json.dumps(QUESTIONS[3]))
        worker = next(iter(pool.workers))
        worker.writer.close()
        return answers, next_answer, await asyncio.to_thread(worker.process.wait, 180)

    return run(test)


def test_a_crew_answers_as_the_server_does(one_crew):
    assert one_crew[0] == [answer(q) for q in QUESTIONS]


def test_killed_workers_are_missed_by_nobody_and_come_back(monkeypatch):
    monkeypatch.setattr("pages.shared.server.worker_pool.REST", 0.1)

    async def ask(pool):
        return await asyncio.wait_for(asyncio.gather(*(pool.ask(json.dumps(q)) for q in QUESTIONS)), timeout=180)

    async def whole(pool):
        """Questions until all workers are back."""
        deadline = time.monotonic() + 180
        while len(pool.workers) < 2 and time.monotonic() < deadline:
            await ask(pool)
            await asyncio.sleep(0.1)
        return await ask(pool)

    async def test(pool):
        first, second = pool.workers
        first.process.kill()
        answers = await ask(pool)
        after = await whole(pool)
        for worker in list(pool.workers):  # idle ones, which nobody asks
            os.kill(worker.process.pid, signal.SIGKILL)
        none_left = await ask(pool)
        again = await whole(pool)
        gone = [worker.process.returncode for worker in (first, second)]
        return answers, none_left, [after, again], gone

    answers, none_left, both, gone = run(test)
    expected = [answer(q) for q in QUESTIONS]
    assert answers.count(None) <= 1
    assert all(a == e for a, e in [*zip(answers, expected, strict=True), *zip(none_left, expected, strict=True)] if a)
    assert both == [expected, expected]
    assert gone == [-signal.SIGKILL] * 2  # waited for: no zombies


def test_an_answer_nobody_waits_for_is_not_given_to_the_next(one_crew):
    assert one_crew[1] == answer(QUESTIONS[3])


def test_without_workers_the_server_answers_itself():
    assert alone(WorkerPool(WORKERS.module).ask("{}")) is None


def test_two_sockets_at_once_are_a_crowd():
    pool = WorkerPool(WORKERS.module)
    assert not pool.crowded(1)
    assert not pool.crowded(1)
    assert pool.crowded(2)
    assert pool.crowded(1)


def test_workers_end_with_their_socket(one_crew):
    assert one_crew[2] == 0
