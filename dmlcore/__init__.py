"""Deep metric learning: loss geometry, training, retrieval metrics and projections.

Submodules are imported on first use, so `import dmlcore` is fast, and commands that do not need torch never import it.
"""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dmlcore.experiments.logged_runs import log_run as log_run
    from dmlcore.experiments.show import show as show
    from dmlcore.inspection.trained_model import load as load

_SUBMODULES = (
    "data",
    "geometry",
    "inspection",
    "jobs",
    "loss_analysis",
    "losses",
    "metrics",
    "mining",
    "models",
    "pooling",
    "projection",
    "simulation",
    "spec",
    "storage",
    "training",
)

__all__ = [*_SUBMODULES, "load", "log_run", "show"]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"dmlcore.{name}")
    if name == "load":
        return importlib.import_module("dmlcore.inspection.trained_model").load
    if name == "log_run":
        return importlib.import_module("dmlcore.experiments.logged_runs").log_run
    if name == "show":
        return importlib.import_module("dmlcore.experiments.show").show
    if name == "__version__":
        try:
            return metadata.version("dml-lab")
        except metadata.PackageNotFoundError:  # source checkout that is not installed
            return "unknown"
    raise AttributeError(f"module 'dmlcore' has no attribute {name!r}")
