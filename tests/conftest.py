"""Settings for all tests."""

import gc
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Shared and slow machines must not fail a test, and a failure must come again: no clocks, the same examples each time.
settings.register_profile(
    "lab", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("lab")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Cases and modules stay: to look through them for garbage, again and again, takes half of the collection."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


BROWSER = "tests/browser/test_"
SECOND = BROWSER + "gu"  # where the other half of their seconds begins


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """With `--dist loadfile` the browser tests are two pieces of work: two processes start a server and a Chromium,
    twelve seconds of processor each, and not all."""
    from xdist.scheduler import LoadFileScheduling

    class Halves(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return f"browser {file >= SECOND}" if file.startswith(BROWSER) else file

    return Halves(config, log) if config.getoption("dist") == "loadfile" else None
