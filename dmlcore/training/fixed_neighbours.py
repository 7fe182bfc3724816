"""Retrieval within fixed neighbourhoods: the test samples' neighbours when neighbourhood batches begin, ordered anew.

What is trained in neighbourhoods of a network learns to tell near samples apart, and may forget what keeps far ones
apart. Whether it does is seen where each query chooses only among the K nearest samples that the network of before gave
it. Source: Can 2018, Table 3.3.
"""

from __future__ import annotations

from dmlcore.metrics import nearest, rerank
from dmlcore.storage.metrics_rows import Row
from dmlcore.training.batches import embed
from dmlcore.training.state import TrainingState, embedder
from dmlcore.typing import Bools, Ints, Singles


def is_due(state: TrainingState, number: int) -> bool:
    """Whether the batches of step `number` are of neighbourhoods, and those of the test samples are not known yet."""
    batch = state.spec.batch
    return batch.sampler == "neighbourhood" and number > batch.balanced_steps and state.fixed is None


def find(state: TrainingState, rows: Ints, searched: Bools) -> None:
    """List the neighbours of each test sample by the network as it is; rows, searched: of `evaluation.rows_of`."""
    embeddings = embed(embedder(state), state.data, rows, state.device)
    gallery = embeddings[searched] if searched.any() else None
    available = len(embeddings) - 1 if gallery is None else len(gallery)
    state.fixed = nearest(embeddings[~searched], gallery, k=min(state.spec.batch.neighbours, available))[1]


def scored(state: TrainingState, embeddings: Singles, rows: Ints, searched: Bools, step: int) -> list[Row]:
    """A row of scores within them, of embeddings of these rows; none where neighbours were not listed.

    It has R@K for each K of the spec that is no larger than a neighbourhood; before_ is the order of the network that
    listed them, chance_ a random one, reach the share of queries with a match among them.
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
    except ValueError:  # no K is as small as a neighbourhood, or no sample has another of its class
        return []
    values = {"": scores.recall_at, "before_": scores.before_at, "chance_": scores.chance_at}
    return [
        {"kind": "fixed_neighbours", "step": step, "neighbours": state.fixed.shape[1], "queries": scores.queries}
        | {f"{name}recall_at_{k}": share for name, shares in values.items() for k, share in shares.items()}
        | {"reach": scores.reach}
    ]
