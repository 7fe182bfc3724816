"""Retrieval scores within fixed neighbourhoods: neighbours found by an earlier network, ranked by the current one.

A network trained on batches of neighbours learns to separate samples that are close to each other, and may forget what
separates distant ones. To measure this, each test query chooses only among the K nearest samples that the network found
for it before neighbourhood batches began.

Reference:
    Can 2018, Table 3.3.
"""

from __future__ import annotations

from dmlcore.metrics import nearest, rerank
from dmlcore.storage.metrics_rows import Row
from dmlcore.training.batches import embed
from dmlcore.training.state import TrainingState, embedder
from dmlcore.typing import Bools, Ints, Singles


def is_due(state: TrainingState, number: int) -> bool:
    """Return True if neighbourhood batches have started, but the neighbours of the test samples are not stored yet."""
    batch = state.spec.batch
    return batch.sampler == "neighbourhood" and number > batch.balanced_steps and state.fixed is None


def find(state: TrainingState, rows: Ints, searched: Bools) -> None:
    """Find the neighbours of each test sample with the current network, and store them in `state.fixed`.

    Args:
        state: The training state.
        rows: Indices of the test samples and their gallery, as `evaluation.rows_of` returns them.
        searched: Mask of the gallery samples among `rows`.
    """
    embeddings = embed(embedder(state), state.data, rows, state.device)
    gallery = embeddings[searched] if searched.any() else None
    available = len(embeddings) - 1 if gallery is None else len(gallery)
    state.fixed = nearest(embeddings[~searched], gallery, k=min(state.spec.batch.neighbours, available))[1]


def score_rows(state: TrainingState, embeddings: Singles, rows: Ints, searched: Bools, step: int) -> list[Row]:
    """Return a list with one row of scores within the fixed neighbourhoods, or [] if no neighbours are stored.

    The row has R@K for each K of the spec that is not larger than the number of neighbours. R@K is computed for three
    rankings: that of the current network (no prefix), that of the earlier network (`before_`) and a random one
    (`chance_`). `reach` is the share of queries with a match in their neighbourhood.
    """
    if state.fixed is None:
        return []
    labels, has_gallery = state.data.labels[rows], bool(searched.any())
    try:
        scores = rerank(
            embeddings[~searched],
            labels[~searched],
            state.fixed,
            state.spec.ks,
            gallery=embeddings[searched] if has_gallery else None,
            gallery_labels=labels[searched] if has_gallery else None,
        )
    except ValueError:  # every K exceeds the number of neighbours, or no sample has another one of its class
        return []
    values = {"": scores.recall_at, "before_": scores.before_at, "chance_": scores.chance_at}
    return [
        {"kind": "fixed_neighbours", "step": step, "neighbours": state.fixed.shape[1], "queries": scores.queries}
        | {f"{name}recall_at_{k}": share for name, shares in values.items() for k, share in shares.items()}
        | {"reach": scores.reach}
    ]
