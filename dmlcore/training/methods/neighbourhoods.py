"""Retrieval scores within fixed neighbourhoods: neighbours found by an earlier network, ranked by the current one.

A network trained on batches of neighbours learns to separate samples that are close to each other, and may forget what
separates distant ones. To measure this, each test query chooses only among the K nearest samples that the network found
for it before neighbourhood batches began.

Reference:
    Can 2018, Table 3.3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dmlcore.metrics import nearest, rerank
from dmlcore.storage.metrics_rows import Row
from dmlcore.training.batches import embed, rows_of
from dmlcore.training.methods.base import method
from dmlcore.training.state import Method, Parent, TrainingState, embedder
from dmlcore.typing import Singles


@method(
    "neighbourhoods",
    title="Local neighbourhoods",
    source="Can 2018, Sec. 3.4",
    switch=lambda spec: spec.batch.sampler == "neighbourhood",
)
class Neighbourhoods(Method):
    """Scores the final embeddings within neighbourhoods that were fixed when neighbourhood batches began.

    The batches themselves come from `samplers.NeighbourhoodSampler`.

    Attributes:
        fixed: "neighbours" (Q, K), row indices of the neighbours of each test sample; empty until they are found.
    """

    tensors = ("fixed",)

    def __init__(self, state: TrainingState) -> None:
        self.fixed: dict[str, Tensor] = {}

    def before_step(self, state: TrainingState, number: int) -> None:
        """Find the neighbours of each test sample with the current network, before the first neighbourhood batch."""
        batch = state.spec.batch
        if self.fixed or number <= batch.balanced_steps or not len(state.data.splits["test"]):
            return
        rows, searched = rows_of(state.data, "test")
        embeddings = embed(embedder(state), state.data, rows, state.device)
        gallery = embeddings[searched] if searched.any() else None
        available = len(embeddings) - 1 if gallery is None else len(gallery)
        listed = nearest(embeddings[~searched], gallery, k=min(batch.neighbours, available))[1]
        self.fixed = {"neighbours": torch.from_numpy(listed)}

    def after_test(self, state: TrainingState, embeddings: Singles, step: int) -> list[Row]:
        """Return a list with one row of scores within the fixed neighbourhoods, or [] if no neighbours are stored.

        The row has R@K for each K of the spec that is not larger than the number of neighbours. R@K is computed for
        three rankings: that of the current network (no prefix), that of the earlier network (`before_`) and a random
        one (`chance_`). `reach` is the share of queries with a match in their neighbourhood.
        """
        if not self.fixed:
            return []
        rows, searched = rows_of(state.data, "test")
        labels, has_gallery = state.data.labels[rows], bool(searched.any())
        fixed = self.fixed["neighbours"].cpu().numpy()
        try:
            scores = rerank(
                embeddings[~searched],
                labels[~searched],
                fixed,
                state.spec.ks,
                gallery=embeddings[searched] if has_gallery else None,
                gallery_labels=labels[searched] if has_gallery else None,
            )
        except ValueError:  # every K exceeds the number of neighbours, or no sample has another one of its class
            return []
        values = {"": scores.recall_at, "before_": scores.before_at, "chance_": scores.chance_at}
        return [
            {"kind": "fixed_neighbours", "step": step, "neighbours": fixed.shape[1], "queries": scores.queries}
            | {f"{name}recall_at_{k}": share for name, shares in values.items() for k, share in shares.items()}
            | {"reach": scores.reach}
        ]

    def fork(self, state: TrainingState, parent: Parent) -> list[str]:
        """Take over the neighbours of the test samples, which do not depend on the objective."""
        self.restore(state, parent.tensors, parent.facts)
        return []
