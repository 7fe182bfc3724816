"""Training with conditioned embeddings: the switch from single samples to samples with their neighbours.

The network is trained alone for `conditioning.after` steps. Its best weights then embed the training split, in which
the neighbours of every sample are searched once. From then on, each sample of a batch forms a sequence of its own
embedding and the stored embeddings of its neighbours. By default the network is then frozen, because Can 2018 does not
mention further training. With `conditioning.continued` it continues to train, and the stored embeddings are recomputed
every `batch.refresh` steps.

Reference:
    Can 2018, Ch. 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore.models.conditioned import in_order
from dmlcore.storage.metrics_rows import Row
from dmlcore.training import evaluation
from dmlcore.training.batches import Batch, embed
from dmlcore.training.methods.base import method
from dmlcore.training.neighbours import Conditioned, neighbours
from dmlcore.training.objective import seed_of
from dmlcore.training.state import Method, Parent, TrainingState, use_best


@method(
    "conditioning",
    title="Conditioned embedding",
    source="Can 2018, Ch. 4",
    switch=lambda spec: spec.conditioning.neighbours > 0,
)
class Conditioning(Method):
    """Conditions the embedding of each sample on those of its neighbours, after `conditioning.after` steps.

    Attributes:
        neighbourhood: "table" (N, D), the unconditioned embeddings of the training split, and "neighbours" (N, K), row
            indices into the table, on the CPU; empty before conditioning starts.
        conditioned: True once conditioning has started.
    """

    tensors = ("neighbourhood",)
    facts = ("conditioned",)
    conditioned = False

    def __init__(self, state: TrainingState) -> None:
        self.neighbourhood: dict[str, Tensor] = {}

    def begin(self, state: TrainingState) -> list[Row]:
        """Start conditioning if the network is not trained alone first."""
        return [self._start(state)] if self.is_due(state) else []

    def is_due(self, state: TrainingState) -> bool:
        """Return True if conditioning starts now: it has not started, and `conditioning.after` steps are done."""
        return not self.conditioned and state.progress.step == state.spec.conditioning.after

    def before_step(self, state: TrainingState, number: int) -> None:
        """Freeze the network once conditioning has started, or recompute the stored embeddings if due."""
        if not self.conditioned:
            return
        spec = state.spec
        if spec.conditioning.continued:
            done, every = number - 1 - spec.conditioning.after, spec.batch.refresh
            if done > 0 and every > 0 and done % every == 0:
                self.neighbourhood["table"] = _embedded(state)
            return
        conditioning = state.model.conditioning
        assert conditioning is not None
        state.model.eval()
        conditioning.train()
        own = {id(parameter) for parameter in conditioning.parameters()}
        for parameter in state.model.parameters():
            parameter.requires_grad_(id(parameter) in own)

    def embeddings(self, state: TrainingState, number: int, own: Tensor, batch: Batch) -> Tensor:
        """Return the embeddings of a batch, conditioned on the stored embeddings of their neighbours."""
        if not self.conditioned:
            return own
        places = np.searchsorted(state.data.splits["train"], batch.indices)
        listed = self.neighbourhood["neighbours"].numpy()[places]
        listed = in_order(listed, state.spec.conditioning.order, seed=seed_of(state.spec.seed, "order", number))
        rows = torch.from_numpy(np.ascontiguousarray(listed)).to(own.device)
        return state.model.condition(torch.cat([own[:, None], self.neighbourhood["table"][rows]], dim=1))

    def after_step(self, state: TrainingState, validation: list[Row]) -> list[Row]:
        """Start conditioning if due, and validate the network without and with it."""
        if not self.is_due(state):
            return []
        rows = [] if validation else evaluation.validate(state)
        return [*rows, self._start(state), *evaluation.validate(state)]

    def embedder(self, state: TrainingState) -> nn.Module | None:
        """Return the conditioned network once conditioning has started."""
        if not self.conditioned:
            return None
        # if training continued, the stored table belongs to earlier weights
        table = None if state.spec.conditioning.continued else self.neighbourhood.get("table")
        return Conditioned(state.model, state.spec, state.data, state.device, table)

    def restore(self, state: TrainingState, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Restore the neighbourhoods; the indices stay on the CPU."""
        super().restore(state, tensors, facts)
        if self.neighbourhood:
            self.neighbourhood["neighbours"] = self.neighbourhood["neighbours"].cpu()

    def fork(self, state: TrainingState, parent: Parent) -> list[str]:
        """Take over the neighbourhoods if they have the same samples; else find them again."""
        self.restore(state, parent.tensors if parent.same_samples else {}, parent.facts)
        if self.conditioned and not self.neighbourhood:
            self._find(state)
        return []

    def _start(self, state: TrainingState) -> Row:
        """Start conditioning on neighbours, and return a metrics row that records the start.

        The best weights of the unconditioned network are restored, and the neighbours of each training sample are found
        with them. The search for the best weights then starts again.
        """
        progress = state.progress
        origin = progress.best_step if state.best else progress.step
        use_best(state)
        state.best = {}
        progress.best_score, progress.best_step, progress.stale, progress.plateau = None, progress.step, 0, 0
        self.conditioned = True
        self._find(state)
        train = state.data.labels[state.data.splits["train"]]
        listed = self.neighbourhood["neighbours"].numpy()
        same = float((train[listed] == train[:, None]).mean())
        row: Row = {"kind": "conditioning", "step": progress.step, "from": origin, "neighbours": listed.shape[1]}
        return row | {"same_class": same}

    def _find(self, state: TrainingState) -> None:
        """Embed the training split without conditioning, and store the embeddings and the neighbours of each sample."""
        table = _embedded(state)
        listed = neighbours(table, None, state.spec.conditioning.neighbours)
        self.neighbourhood = {"table": table, "neighbours": torch.from_numpy(listed)}


def _embedded(state: TrainingState) -> Tensor:
    return torch.from_numpy(embed(state.model, state.data, state.data.splits["train"], state.device)).to(state.device)
