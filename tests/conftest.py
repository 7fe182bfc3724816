"""Settings for all tests."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from dmlcore.storage.runs import RunStore

# Rounding of a sum depends on the number of threads. Use one, here and in started processes; the tensors are small.
THREADS = int(os.environ.setdefault("OMP_NUM_THREADS", "1"))

# Slow shared machines must not fail a test and failures must be reproducible: no deadlines and fixed examples.
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
    """Disable garbage collection while collecting: all objects are kept, so that it would take half of the time."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # the page tests create little garbage: saves 5 % of their CPU time
    gc.enable()
    # Pytest attaches two handlers to every logger without propagation in three phases of every test; torch has forty of
    # these.
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("torch") and isinstance(logger, logging.Logger):
            logger.propagate = True
    return collected


@pytest.fixture
def store(tmp_path: Path) -> "RunStore":
    """Empty run store."""
    from dmlcore.storage.runs import RunStore

    return RunStore(tmp_path / "runs")


@pytest.fixture
def tasks_begin_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start background tasks as forks of a process that has imported torch (tests/warm.py)."""
    from tests import warm

    for module in warm.starters():
        monkeypatch.setattr(module, "spawn_detached", warm.begin)


@pytest.fixture
def companions_begin_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the other data-parallel processes of a training run as forks, too (tests/warm.py)."""
    from dmlcore.processes import local
    from tests import warm

    monkeypatch.setattr(local, "subprocess", warm.as_subprocess())


@pytest.hookimpl(wrapper=True, specname="pytest_runtest_protocol")
def pytest_runtest_leaves_nothing_set() -> Generator[None, object, object]:
    """Restore the process-wide settings that training runs, commands, Ray and numba (UMAP) change.

    These are torch's number of threads and deterministic mode, the handlers of SIGINT and SIGTERM, and the umask.
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
    """Send one report per passed test from a worker of `pytest -n`, unless an option needs all of them.

    Setup and teardown are reported only if they fail or skip. Full reports take a third of the time of a small test.
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
    """Distribute files with the scheduler in tests/schedule.py if `--dist loadfile` is set."""
    from tests.schedule import Halves

    return Halves(config, log) if config.getoption("dist") == "loadfile" else None
