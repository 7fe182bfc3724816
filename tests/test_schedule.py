"""The scheduler when processes crash: every other test runs exactly once, and the suite ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from xdist.remote import Producer

from tests.schedule import Halves


class Process:
    """Stub of a worker that starts a test once it knows the next one or that there is none, as in xdist."""

    gateway = SimpleNamespace(id="")

    def __init__(self) -> None:
        self.known, self.shutting_down = list[int](), False

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        self.known += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def run_all(collection: list[str], processes: int, deadly: set[str]) -> tuple[list[str], list[str]]:
    """Return the tests that were completed and those that crashed a process."""
    option = SimpleNamespace(loadscopereorder=False)
    config = SimpleNamespace(option=option, getvalue=lambda name: ["popen"] * processes)
    schedule = Halves(config, Producer("", enabled=False))  # type: ignore[arg-type]
    done, died = list[str](), list[str]()
    alive = [Process() for _ in range(processes)]
    for process in alive:
        schedule.add_node(process)
        schedule.add_node_collection(process, collection)
    schedule.schedule()
    while alive:
        ready = [process for process in alive if len(process.known) > 1 or process.shutting_down]
        assert ready, f"all processes wait, {done} tests are done"
        process = ready[len(done) % len(ready)]
        if not process.known:
            assert schedule.remove_node(process) is None
            alive.remove(process)
        elif (test := collection[process.known[0]]) in deadly:
            assert test not in died, "the test crashed a second process"
            assert schedule.remove_node(process) == test
            died.append(test)
            alive[alive.index(process)] = other = Process()
            schedule.add_node(other)
            schedule.add_node_collection(other, collection)
            schedule.schedule()
        else:
            schedule.mark_test_complete(process, process.known.pop(0))
            done.append(test)
        if schedule.tests_finished:
            for process in alive:
                process.shutdown()
    return done, died


FILES = {"a": 3, "b": 1, "c": 1, "d": 4, "e": 1, "f": 2, "browser/test_a": 2, "browser/test_z": 2}
COLLECTION = [f"tests/{file}.py::test_{number}" for file, tests in FILES.items() for number in range(tests)]


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_every_test_is_run_once_whoever_dies(processes: int) -> None:
    for deadly in (set(), *({test} for test in COLLECTION), {*COLLECTION[:2]}, {*COLLECTION[2:6]}, {*COLLECTION}):
        done, died = run_all(COLLECTION, processes, deadly)
        assert sorted(done) == sorted(set(COLLECTION) - deadly)
        assert sorted(died) == sorted(deadly)
