"""Processes beside the server's own give the same answers, and their loss costs nothing but speed."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

from pages._ui.crew import Crew
from pages._ui.field_service import answer

QUESTIONS = [{"id": k, "scene": {"loss": "ranking", "anchor": [k / 10, 0]}, "n": 41} for k in range(6)]


def alone(coroutine):
    """Run it in a thread: the browser tests leave a running loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def run(test):
    """`test(crew)` with a crew of two, which is stopped afterwards."""

    async def main():
        crew = Crew()
        await crew.start(2)
        try:
            return await test(crew)
        finally:
            crew.stop()

    return alone(main())


def test_a_crew_answers_as_the_server_does():
    async def test(crew):
        return await asyncio.gather(*(crew.ask(json.dumps(q)) for q in QUESTIONS))

    assert run(test) == [answer(q) for q in QUESTIONS]


def test_a_killed_worker_is_missed_by_nobody():
    async def test(crew):
        next(iter(crew.workers)).process.kill()
        answers = await asyncio.gather(*(crew.ask(json.dumps(q)) for q in QUESTIONS))
        assert len(crew.workers) == 1
        next(iter(crew.workers)).process.kill()
        return answers, await asyncio.wait_for(
            asyncio.gather(*(crew.ask(json.dumps(q)) for q in QUESTIONS)), timeout=180
        )

    answers, after = run(test)
    assert answers.count(None) == 1
    assert all(a == answer(q) for a, q in zip(answers, QUESTIONS, strict=True) if a)
    assert after == [None] * len(QUESTIONS)


def test_an_answer_nobody_waits_for_is_not_given_to_the_next():
    async def test(crew):
        task = asyncio.create_task(crew.ask(json.dumps({"id": 99, "n": 201})))
        await asyncio.sleep(0)
        task.cancel()
        return await crew.ask(json.dumps(QUESTIONS[3]))

    assert run(test) == answer(QUESTIONS[3])


def test_without_workers_the_server_answers_itself():
    assert alone(Crew().ask("{}")) is None


def test_two_sockets_at_once_are_a_crowd():
    crew = Crew()
    assert not crew.crowded(1)
    assert not crew.crowded(1)
    assert crew.crowded(2)
    assert crew.crowded(1)


def test_workers_end_with_their_socket():
    async def test(crew):
        worker = next(iter(crew.workers))
        worker.writer.close()
        return await asyncio.to_thread(worker.process.wait, 180)

    assert run(test) == 0
