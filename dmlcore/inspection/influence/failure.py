"""Influence of the training samples on one retrieval failure, computed on request and stored in the run directory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlcore.inspection.failure import answers
from dmlcore.inspection.failure.answers import Question
from dmlcore.inspection.influence.retrace import MOST, Influence, influence
from dmlcore.storage.runs import Run, RunError
from dmlcore.storage.task import ProgressCallback

if TYPE_CHECKING:
    from torch import Tensor

    from dmlcore.training.state import TrainingState

FOLDER = "influence"
NAMED = 0.01  # share of the training split that is listed as candidates for removal
KEYS = ("begin", "end", "steps", "train", "seen", "harm", "help", "harmful", "helpful")

Triplet = tuple[int, int, int]  # sample indices of a query, a neighbour of its class and a neighbour of another class


def path_of(run: Run, query: int, right: int, wrong: int) -> Path | None:
    """Return the path of the result for a triplet of the newest evaluation; None if the run has not been evaluated."""
    return answers.path_of(run, FOLDER, query, right, wrong)


def read(path: Path | None) -> dict[str, Any] | None:
    """Return the result that `make` wrote; None if it is missing or incomplete."""
    return answers.read(path, KEYS)


def make(run: Run, question: Question, tell: ProgressCallback = lambda words, done, total: None) -> Path:
    """Write the influence of each training sample on the margin of a failure; return the path of the file.

    The file holds:
        begin, end: Range of the examined steps, from begin + 1 to end.
        steps: Number of steps that were decomposed by sample.
        train: Number of training samples.
        seen: Number of training samples with a non-zero influence. harm, help: Sums of the negative and of the positive
            influences. harmful, helpful: Lists of [sample index, influence], strongest first, with up to
            `count_listed(train)` entries, or up to 12 if that is more.

    Args:
        run: Evaluated run.
        question: Failure to examine.
        tell: Callback for progress.

    Raises:
        RunError: The run has no embeddings; for other errors see `of_failures`.
    """
    path = path_of(run, *question.triplet)
    if path is None:
        raise RunError(f"{run.id} has no embeddings; evaluate it first")
    whole = of_failures(run, [question.triplet], tell=tell)
    answers.keep(path, _summary(whole))
    return path


def of_failures(
    run: Run,
    triplets: Sequence[Triplet],
    *,
    most: int = MOST,
    tell: ProgressCallback = lambda words, done, total: None,
) -> Influence:
    """Compute the influence of each training sample on the margin d(query, wrong) - d(query, right) of each failure.

    Args:
        run: Evaluated run.
        triplets: F failures, each with the sample indices of the query, a correct and an incorrect neighbour.
        most: Approximate limit on the number of steps that are decomposed by sample.
        tell: Callback for progress.

    Raises:
        ValueError: A sample is not in the test split; for other errors see `retrace.influence`.
    """
    from dmlcore.training import batches
    from dmlcore.training.batches import to_device

    def cases(state: TrainingState) -> Tensor:
        samples = np.array(triplets, np.int64).T.ravel()
        strange = np.setdiff1d(samples, batches.rows_of(state.data, "test")[0])
        if len(strange):
            raise ValueError(f"sample {strange[0]} is not in the test split of {run.id}")
        return to_device(state.data, samples, state.device)

    return influence(run, cases, most=most, tell=tell)


def count_listed(train: int) -> int:
    """Return the number of samples to list out of `train` training samples: one percent, rounded up."""
    return math.ceil(NAMED * train)


def most_harmful(values: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of at most `count` negative values, most negative first; ties are ordered by position."""
    order = np.argsort(values, kind="stable")[:count]
    return order[values[order] < 0]


def _summary(whole: Influence) -> dict[str, Any]:
    values = whole.influence[0]
    count = max(count_listed(len(values)), 12)

    def listed(signed: np.ndarray, sign: int) -> list[list[float]]:
        return [[int(whole.samples[place]), sign * float(signed[place])] for place in most_harmful(signed, count)]

    return {
        "begin": whole.begin,
        "end": whole.end,
        "steps": whole.steps,
        "train": len(values),
        "seen": int(np.count_nonzero(values)),
        "harm": float(values[values < 0].sum()),
        "help": float(values[values > 0].sum()),
        "harmful": listed(values, 1),
        "helpful": listed(-values, -1),
    }
