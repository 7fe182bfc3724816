"""Changes that a fork makes to the training split: classes and samples that are left out, and new labels."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from dmlcore.data import Dataset
from dmlcore.spec.sections import ForkSpec
from dmlcore.training.errors import TrainingError


def edit_split(dataset: Dataset, fork: ForkSpec) -> Dataset:
    """Return the data set with a changed training split; validation and test splits are unchanged.

    Raises:
        TrainingError: If a class or sample is not in the training split, or if fewer than two classes are left.
    """
    if not (fork.leave_out or fork.leave_out_samples or fork.relabel):
        return dataset
    train = dataset.splits["train"]
    known = set(np.unique(dataset.labels[train]).tolist())
    for key, samples, done in (
        ("relabel", [sample for sample, _ in fork.relabel], "relabelled"),
        ("leave_out_samples", fork.leave_out_samples, "left out"),
    ):
        if strange := np.setdiff1d(samples, train).tolist():
            raise TrainingError(f"fork.{key}: only samples of the training split can be {done}, not {_some(strange)}")
    for key, classes in (("leave_out", fork.leave_out), ("relabel", [label for _, label in fork.relabel])):
        if unknown := [label for label in classes if label not in known]:
            raise TrainingError(
                f"fork.{key}: {_some(unknown)} is not a class of the training split, which has {_some(sorted(known))}"
            )
    labels = dataset.labels.copy()
    for sample, label in fork.relabel:
        labels[sample] = label
    left = train[~np.isin(train, fork.leave_out_samples)]
    # a sample relabelled into a class that is left out is removed too
    left = left[~np.isin(labels[left], fork.leave_out)]
    if len(np.unique(labels[left])) < 2:
        raise TrainingError("fork.leave_out: at least two classes must remain in the training split")
    return replace(dataset, labels=labels, splits={**dataset.splits, "train": left})


def _some(numbers: Collection[int], most: int = 12) -> str:
    shown = ", ".join(map(str, list(numbers)[:most]))
    return f"{shown} and {len(numbers) - most} more" if len(numbers) > most else shown
