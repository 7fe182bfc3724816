"""Settings for all tests."""

from hypothesis import HealthCheck, settings

# Shared and slow machines must not fail a test, and a failure must come again: no clocks, the same examples each time.
settings.register_profile(
    "lab", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("lab")
