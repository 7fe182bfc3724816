"""Settings for all tests."""

import gc
from collections.abc import Generator

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
