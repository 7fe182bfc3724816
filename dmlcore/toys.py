"""Toy trainings to watch: their data and network, inputs as points in space, scores beside the published ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dmlcore import data, losses, workbench
from dmlcore.data import Dataset
from dmlcore.live import Change, LiveTraining
from dmlcore.metrics import RetrievalScores, retrieval
from dmlcore.published import tables
from dmlcore.spec import RunSpec

SETS = ("toy", "moons", "rings", "digits")
HIDDEN = 32  # width of the hidden layer, as in the toy network of Karaman 2021
RECENT = 25  # batches in the mean that a noisy curve shows
TABLE = "4.1"
COLUMNS = ("R@1", "R@8", "P@R", "MAP@R")
NOT_STATED = (
    "The thesis does not state the output size, the slope of the leaky ReLU, whether outputs are normalised, the "
    "learning rate of this table, nor when training stopped; its 12 classes are another draw than ours."
)
Points = NDArray[np.float32]


@dataclass(frozen=True)
class InputSpace:
    """Inputs as points (n, 3) to look at, the names of the axes, and how they came about in plain words."""

    points: Points
    axes: tuple[str, str, str]
    note: str


@dataclass(frozen=True)
class PublishedRow:
    """One row of Table 4.1: label, the loss with its hyper-parameters (or none), the scores in per cent."""

    label: str
    loss: str | None
    hyper: dict[str, float]
    scores: dict[str, float]


def toy_run(name: str, **sections: dict[str, Any]) -> RunSpec:
    """The toy run on one of SETS: linear -> 32 -> leaky ReLU -> 2, RMSprop, batches of 4 x 8; `sections` of the spec
    say what else.

    Source: Karaman 2021, Sec. 4.1; output 2 so that it can be seen. Raises SpecError, DataError.
    """
    info = data.describe(name)
    usual: dict[str, Any] = {
        "data": {"name": name, "split": info.split, "validation": info.validation},
        "model": {"name": "mlp", "hidden": (HIDDEN,), "embedding_dim": 2, "normalize": False},
        "loss": {"name": "ranking", "parameters": {"m": 0.1}},
        "batch": {"classes": 4, "samples": 8},
        "optimiser": {"name": "rmsprop", "learning_rate": 0.005},
    }
    return RunSpec.parse({key: usual.get(key, {}) | sections.get(key, {}) for key in (usual | sections)})


@lru_cache(maxsize=16)
def dataset(name: str, seed: int) -> Dataset:
    """One of SETS as its runs split it; kept, as a data set is never changed."""
    return workbench.load_data(toy_run(name).model_copy(update={"seed": seed}))


def input_space(dataset: Dataset, indices: NDArray[np.int64]) -> InputSpace:
    """Vectors of these samples in space: up to three features as they are, more by principal components of the
    training part, in the units of the inputs. Raises ValueError for inputs that are no vectors."""
    if len(dataset.inputs.shape) != 2:
        raise ValueError(f"inputs must be vectors (N, F), got shape {dataset.inputs.shape}")
    features = dataset.inputs.shape[1]
    chosen = np.asarray(dataset.inputs[indices], dtype=np.float64)
    if features <= 3:
        points = np.zeros((len(indices), 3), np.float32)
        points[:, :features] = chosen
        return InputSpace(points, ("x₁", "x₂", "x₃"), f"the {features} features as they are")
    vectors = np.asarray(dataset.inputs[dataset.parts["train"]], dtype=np.float64)
    basis, shares = _principal_axes(vectors)

    percent = 100 * shares.sum()
    note = f"three principal components of {features} features: {percent:.0f} % of the variance of the training part"
    return InputSpace(((chosen - vectors.mean(0)) @ basis.T).astype(np.float32), ("PC 1", "PC 2", "PC 3"), note)


def train_scores(training: LiveTraining, step: int, part: str = "train") -> RetrievalScores:
    """Retrieval scores of the network after `step`, over every sample of a part, each a query against the others."""
    training.frame(step)
    before = tuple(change for change in training.spec.changes if change.step < step)
    model = training.fork((*before, Change(step))).weights().eval()  # the history up to this step, replayed
    indices = training.dataset.parts[part]
    with torch.inference_mode():
        embeddings = model(workbench.to_device(training.dataset, indices, torch.device("cpu"))).numpy()
    return retrieval(embeddings, training.dataset.labels[indices], ks=(1, 8))


def input_scores(dataset: Dataset, part: str = "train") -> RetrievalScores:
    """Retrieval scores of the inputs themselves: what a network has to beat."""
    indices = dataset.parts[part]
    return retrieval(np.asarray(dataset.inputs[indices]), dataset.labels[indices], ks=(1, 8))


def in_columns(scores: RetrievalScores) -> dict[str, float | None]:
    """The COLUMNS of the table in per cent."""
    found = (scores.recall_at[1], scores.recall_at[8], scores.r_precision, scores.map_at_r)
    return {name: None if v is None else 100 * v for name, v in zip(COLUMNS, found, strict=True)}


def recent_mean(values: NDArray[np.float64], window: int = RECENT) -> NDArray[np.float64]:
    """Mean of the last `window` values up to each, those that are no number left out; NaN where there is none."""
    known = np.isfinite(values)
    sums, counts = (np.concatenate([[0.0], np.cumsum(x)]) for x in (np.where(known, values, 0.0), known))
    end = np.arange(1, len(values) + 1)
    begin = np.maximum(end - window, 0)
    with np.errstate(invalid="ignore"):
        mean: NDArray[np.float64] = (sums[end] - sums[begin]) / (counts[end] - counts[begin])
    return mean


def published() -> list[PublishedRow]:
    """Table 4.1 of Karaman 2021: train scores on its toy data."""
    return [_published(row) for row in tables.rows() if row.table == TABLE]


def matches(row: PublishedRow, run: RunSpec) -> bool:
    """Whether a run trains with the loss of a row, hyper-parameters included."""
    if row.loss != run.loss.name:
        return False
    ours = losses.describe(run.loss.name).resolve(run.loss.parameters)
    theirs = losses.describe(run.loss.name).resolve(row.hyper)
    return all(_equal(ours[k], theirs[k]) for k in theirs)


def _equal(a: float | str, b: float | str) -> bool:
    return a == b if isinstance(a, str) or isinstance(b, str) else math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)


def _published(row: tables.Row) -> PublishedRow:
    spaces = {"input_space": "input space", "initial_feature_space": "untrained network"}
    scores = {name: row.scores[name] for name in COLUMNS}
    if row.loss in spaces:
        return PublishedRow(spaces[row.loss], None, {}, scores)
    given = ", ".join(f"{k} = {v:g}" for k, v in row.hyper.items())
    return PublishedRow(f"{losses.describe(row.loss).title}, {given}", row.loss, row.hyper, scores)


def _principal_axes(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The three leading axes (3, F), signed so that the largest entry is positive, and their shares of variance."""
    _, singular, axes = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    signs = np.sign(axes[np.arange(3), np.abs(axes[:3]).argmax(1)])
    return axes[:3] * signs[:, None], (singular**2 / (singular**2).sum())[:3]
