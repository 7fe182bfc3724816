"""Data for training runs on a simulated device."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from dmlcore.data import Dataset
from dmlcore.spec import RunSpec
from dmlcore.training.build import load_data


@cache
def few_of(name: str) -> Dataset:
    """Return a few samples of a data set; the tests check only the devices of tensors."""
    data = load_data(RunSpec().with_overrides([f"data.name={name}"]))
    return replace(data, splits={split: rows[:: 1 + len(rows) // 80] for split, rows in data.splits.items()})
