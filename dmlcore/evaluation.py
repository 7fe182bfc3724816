"""What a run has learned: embeddings and scores of a part, the embeddings file, its projection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from dmlcore import durable
from dmlcore.data import Dataset
from dmlcore.data.tokens import counts
from dmlcore.metrics import RetrievalScores, retrieval
from dmlcore.runs import Row, Run, RunError
from dmlcore.workbench import to_device

CHUNK = 256  # samples embedded at once
RAW_SIDE = 32  # raw pictures are compared at this side at most


def embed(model: nn.Module, data: Dataset, part: str, device: torch.device) -> NDArray[np.float32]:
    """Embeddings (n, D) float32 of a part, in the order of its indices."""
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        found = [model(to_device(data, chunk, device)).float().cpu().numpy() for chunk in _chunks(data.parts[part])]
    model.train(was_training)
    return np.concatenate(found)


def raw_inputs(data: Dataset, part: str) -> NDArray[np.float32]:
    """The inputs themselves as embeddings (n, F): what a network has to beat.

    Pictures at 32 x 32 at most; bags of token ids as the counts of each id, which do not depend on the order.
    """
    is_bag = len(data.inputs.shape) == 2 and data.inputs.dtype.kind in "iu"
    tokens = int(data.inputs[:].max()) + 1 if is_bag else 0

    def flat(chunk: NDArray[np.int64]) -> NDArray[np.float32]:
        if is_bag:
            return counts(data.inputs[chunk], tokens).astype(np.float32)
        inputs = torch.from_numpy(np.ascontiguousarray(data.inputs[chunk])).float()
        if inputs.ndim == 4 and max(inputs.shape[2:]) > RAW_SIDE:
            inputs = F.adaptive_avg_pool2d(inputs, RAW_SIDE)
        return inputs.flatten(1).numpy()

    return np.concatenate([flat(chunk) for chunk in _chunks(data.parts[part])])


def score(embeddings: NDArray[np.float32], data: Dataset, part: str, ks: tuple[int, ...]) -> RetrievalScores:
    """Retrieval within a part, every sample a query against the others."""
    return retrieval(embeddings, data.labels[data.parts[part]], ks=ks)


def row(of: str, step: int, scores: RetrievalScores, **extra: Any) -> Row:
    """The line of metrics.jsonl for test scores of "inputs", "untrained" or "trained"."""
    return {
        "kind": "scores",
        "of": of,
        "step": step,
        "map_at_r": scores.map_at_r,
        "r_precision": scores.r_precision,
        "recall_at": {str(k): value for k, value in scores.recall_at.items()},
        "precision_at": {str(k): value for k, value in scores.precision_at.items()},
        "queries": scores.queries,
        "skipped": scores.skipped,
        **extra,
    }


def write_embeddings(run: Run, digest: str, embeddings: NDArray[np.float32], data: Dataset, part: str) -> Path:
    """Write embeddings/<digest>.npz: embeddings (n, D), labels (n,), indices (n,) into the data set."""
    path = run.path / "embeddings" / f"{digest}.npz"
    path.parent.mkdir(exist_ok=True)
    indices = data.parts[part]
    labels = data.labels[indices]
    durable.replace(
        path, lambda file: np.savez(file, allow_pickle=False, embeddings=embeddings, labels=labels, indices=indices)
    )
    return path


def project(run: Run) -> Path:
    """Write the t-SNE of the newest embeddings beside them: points (n, 2) and perplexity; RunError without any."""
    from dmlcore.projection import (
        fitting_perplexity,
        tsne,
    )  # scikit-learn is slow to import, and training does not need it

    source = run.embeddings()
    if source is None:
        raise RunError(f"{run.id} has no embeddings yet; evaluate it first")
    with np.load(source, allow_pickle=False) as arrays:
        points = tsne(arrays["embeddings"], seed=run.spec.seed)
    path = source.with_suffix(".tsne.npz")
    perplexity = fitting_perplexity(len(points))
    durable.replace(path, lambda file: np.savez(file, allow_pickle=False, points=points, perplexity=perplexity))
    return path


def _chunks(indices: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(indices), CHUNK):
        yield indices[start : start + CHUNK]
