"""Deep metric learning: loss geometry, training, retrieval metrics, projections.

Submodules load at first use, so `import dmlcore` is quick and a command that needs no torch never loads it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

_SUBMODULES = (
    "data",
    "geometry",
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

__all__ = list(_SUBMODULES)


def __getattr__(name: str) -> ModuleType:
    if name in _SUBMODULES:
        return importlib.import_module(f"dmlcore.{name}")
    raise AttributeError(f"module 'dmlcore' has no attribute {name!r}")
