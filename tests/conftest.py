"""Settings for all tests."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Generator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

# The bits of a sum depend on how many threads add it up: one, here and in what tests start, as their tensors are small.
THREADS = int(os.environ.setdefault("OMP_NUM_THREADS", "1"))

# Shared and slow machines must not fail a test, and a failure must come again: no clocks, the same examples each time.
settings.register_profile(
    "lab",
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("lab")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Cases and modules stay: to look through them for garbage, again and again, takes half of the collection."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # the tests of pages make little that is garbage: 5 % of their processor
    gc.enable()
    # To each logger that stands alone, forty of torch, pytest ties its two handlers in three phases of every test.
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("torch") and isinstance(logger, logging.Logger):
            logger.propagate = True
    return collected


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """What the processes of the suite import, one imports for all of them (tests/workers.py)."""
    from tests import workers

    workers.fork_them(config)


@pytest.fixture
def tasks_begin_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is started as a process of its own has torch from another one (tests/warm.py)."""
    from tests import warm

    for module in warm.starters():
        monkeypatch.setattr(module, "spawn_detached", warm.begin)


@pytest.fixture
def companions_begin_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """So have those that train a run together with this one."""
    from dmlcore.processes import local
    from tests import warm

    monkeypatch.setattr(local, "subprocess", warm.as_subprocess())


@pytest.hookimpl(wrapper=True, specname="pytest_runtest_protocol")
def pytest_runtest_leaves_nothing_set() -> Generator[None, object, object]:
    """What trainings, UMAP by numba, commands and Ray set is not for the next test.

    These are torch's threads and deterministic mode, who answers the signals that ask to end, and the umask.
    """
    os.umask(mask := os.umask(0o022))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ran = yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    os.umask(mask)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(THREADS)
        torch.set_deterministic_debug_mode("default")
    return ran


@pytest.hookimpl
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A process of `pytest -n` tells of a test once, not five times, unless there is more to tell or somebody asks.

    That it passed says its call. Its begin, setup and teardown are told only where they fail or skip, as to tell them
    takes a third of what a case costs.
    """
    option = item.config.option
    asked = any(getattr(option, name, None) for name in ("durations", "xmlpath", "reruns"))
    if asked or item.get_closest_marker("flaky") or not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """With `--dist loadfile` files are handed out by a schedule of our own (tests/schedule.py)."""
    from tests.schedule import Halves

    return Halves(config, log) if config.getoption("dist") == "loadfile" else None
