"""The influence on one failure, asked for by a page and kept with the run: who harmed it, who helped it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlcore.inspection.failure import answers
from dmlcore.inspection.influence.retrace import MOST, Influence, influence
from dmlcore.storage.runs import Run, RunError
from dmlcore.storage.task import ProgressCallback

if TYPE_CHECKING:
    from torch import Tensor

    from dmlcore.training.state import TrainingState

FOLDER = "influence"
NAMED = 0.01  # share of the training split that is named as those to leave out
KEYS = ("begin", "end", "steps", "train", "seen", "harm", "help", "harmful", "helpful")

Triplet = tuple[int, int, int]  # samples of the data set: query, right, wrong neighbour


@dataclass(frozen=True)
class FailureQuestion:
    """Samples of the data set."""

    query: int
    right: int
    wrong: int

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> FailureQuestion:
        """The question of a job; raises ValueError or KeyError for another text."""
        data = json.loads(text)
        return cls(*(int(data[name]) for name in ("query", "right", "wrong")))


def path_of(run: Run, query: int, right: int, wrong: int) -> Path | None:
    """Where the result on a triplet of the newest evaluation is kept; None before an evaluation."""
    return answers.path_of(run, FOLDER, query, right, wrong)


def read(path: Path | None) -> dict[str, Any] | None:
    """What `make` has written; None where there is nothing or nothing whole."""
    return answers.read(path, KEYS)


def make(run: Run, question: FailureQuestion, tell: ProgressCallback = lambda words, done, total: None) -> Path:
    """Find what each training sample did to the margin of a failure, and write it; return the file.

    {"begin", "end": the steps between which was looked, "steps": how many were taken apart, "train": samples of the
    training split, "seen": how many of them a step taken apart saw, "harm" < 0 and "help" > 0: sums of what lowered and
    raised the margin, "harmful", "helpful": [[sample, influence], ...], the strongest first, as many as `named` says}.
    Raises what `of_failures` raises.
    """
    path = path_of(run, question.query, question.right, question.wrong)
    if path is None:
        raise RunError(f"{run.id} has no embeddings; evaluate it first")
    whole = of_failures(run, [(question.query, question.right, question.wrong)], tell=tell)
    answers.keep(path, _summary(whole))
    return path


def of_failures(
    run: Run,
    triplets: Sequence[Triplet],
    *,
    most: int = MOST,
    tell: ProgressCallback = lambda words, done, total: None,
) -> Influence:
    """What each training sample did to the margin d(query, wrong) - d(query, right) of each failure.

    Raises ValueError for a sample that is not in the test split, and what `retrace.influence` raises.
    """
    from dmlcore.training import evaluation
    from dmlcore.training.batches import to_device

    def cases(state: TrainingState) -> Tensor:
        samples = np.array(triplets, np.int64).T.ravel()
        strange = np.setdiff1d(samples, evaluation.rows_of(state.data, "test")[0])
        if len(strange):
            raise ValueError(f"sample {strange[0]} is not in the test split of {run.id}")
        return to_device(state.data, samples, state.device)

    return influence(run, cases, most=most, tell=tell)


def named(train: int) -> int:
    """How many samples of a training split of `train` the result names: one in a hundred, rounded up."""
    return math.ceil(NAMED * train)


def most_harmful(values: np.ndarray, count: int) -> np.ndarray:
    """Places of those that lowered a margin most, the worst first; ties by place, at most `count`."""
    order = np.argsort(values, kind="stable")[:count]
    return order[values[order] < 0]


def _summary(whole: Influence) -> dict[str, Any]:
    values = whole.influence[0]
    count = max(named(len(values)), 12)

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
