"""Analysis of the trained embeddings of runs: neighbours, failures, confusions, duplicates and maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dmlcore.inspection.thresholds import threshold as threshold

__all__ = ["threshold"]


def __getattr__(name: str) -> Any:
    if name == "threshold":  # imported late: it imports torch
        from dmlcore.inspection.thresholds import threshold

        return threshold
    raise AttributeError(f"module 'dmlcore.inspection' has no attribute {name!r}")
