"""Settings for all tests."""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from dmlcore.storage.runs import RunStore

# Rounding of a sum depends on the number of threads. Use one, here and in started processes; the tensors are small.
THREADS = int(os.environ.setdefault("OMP_NUM_THREADS", "1"))

HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
os.umask(UMASK := os.umask(0o022))

# Slow shared machines must not fail a test and failures must be reproducible: no deadlines and fixed examples.
settings.register_profile(
    "lab",
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("lab")


@pytest.fixture
def store(tmp_path: Path) -> "RunStore":
    """Empty run store."""
    from dmlcore.storage.runs import RunStore

    return RunStore(tmp_path / "runs")


@pytest.fixture
def forked_tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start background tasks as forks of a process that has trained (tests/started.py) and kill those left at the end.

    On a machine with a GPU they are started as usual: a fork of a process that has used CUDA cannot use the GPU.
    """
    from dmlcore.jobs import launch
    from dmlcore.storage import task
    from tests import started

    forks = []

    def start(arguments: Sequence[str], log: Path | None = None) -> started.ForkedTask:
        forks.append(fork := started.ForkedTask(arguments, log))
        fork.start()
        return fork

    if not started.CARD.exists():
        for module in (launch, task):
            monkeypatch.setattr(module, "spawn_detached", start)
    yield
    for fork in forks:
        if fork.is_alive():
            fork.kill()


@pytest.fixture(autouse=True)
def _process_settings() -> Iterator[None]:
    """Restore the process-wide settings that training runs, commands, Ray and numba (UMAP) change.

    These are torch's number of threads and deterministic mode, the handlers of SIGINT and SIGTERM, and the umask.
    """
    yield
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)
    os.umask(UMASK)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(THREADS)
        torch.set_deterministic_debug_mode("default")
