"""The limit of file descriptors, and the number of descriptors of a session."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
from concurrent.futures import ThreadPoolExecutor

from pages.shared.server.descriptors import SessionLoopPolicy, raise_limit


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_the_soft_limit_becomes_the_hard_one():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        raise_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_loop_that_never_runs_holds_no_descriptor():
    before = count_descriptors()
    loops = [SessionLoopPolicy().new_event_loop() for _ in range(8)]
    assert count_descriptors() == before
    for loop in loops:
        loop.close()
        assert loop.is_closed()


def test_a_loop_that_runs_does_all_that_a_loop_does():
    before = count_descriptors()
    with ThreadPoolExecutor(1) as thread:  # in a thread, like a script
        thread.submit(_run_a_loop).result()
    assert count_descriptors() == before


def _run_a_loop() -> None:
    loop = SessionLoopPolicy().new_event_loop()

    async def work() -> list[object]:
        await asyncio.sleep(0.01)
        woken = asyncio.get_running_loop().create_future()
        threading.Timer(0.01, loop.call_soon_threadsafe, [woken.set_result, "from a thread"]).start()
        process = await asyncio.create_subprocess_exec("echo", "x", stdout=asyncio.subprocess.PIPE)
        said, _ = await process.communicate()
        return [await woken, await asyncio.to_thread(lambda: 1), said]

    for _ in range(2):
        assert loop.run_until_complete(work()) == ["from a thread", 1, b"x\n"]
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
