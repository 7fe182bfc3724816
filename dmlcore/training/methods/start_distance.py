"""Penalty on how far embeddings move from those of the initial network, of which a frozen copy is kept.

Reference:
    Can 2018, Sec. 3.4 (J_pre).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dmlcore import processes
from dmlcore.models.networks import ImageNetwork, Network
from dmlcore.pooling import at_least_float32
from dmlcore.storage import checkpoint
from dmlcore.training.batches import Batch
from dmlcore.training.methods.base import method
from dmlcore.training.state import Method, Parent, TrainingState, autocast

BACKBONE = "backbone."


@method(
    "start_distance",
    title="Distance from the start",
    source="Can 2018, Sec. 3.4",
    switch=lambda spec: spec.loss.start_weight > 0,
)
class StartDistance(Method):
    """Adds `loss.start_weight` times the mean distance between embeddings and those of the initial network.

    Attributes:
        reference: Frozen copy of the network at the start of the run. It shares a frozen backbone with the network,
            because training does not change it.
        last: Mean distance in the last step.
    """

    def __init__(self, state: TrainingState) -> None:
        self._shares = _has_frozen_backbone(state.model)
        shared = {id(state.model.backbone): state.model.backbone} if self._shares else {}
        self.reference: Network = copy.deepcopy(state.model, shared).eval().requires_grad_(False)
        self.last: Tensor | None = None

    def penalty(self, state: TrainingState, own: Tensor, batch: Batch) -> Tensor | None:
        """Return the weighted distance; None while the network is frozen, so that embeddings have no gradient."""
        with torch.no_grad(), autocast(state):
            started = processes.gather(at_least_float32(self.reference(batch.inputs)), len(batch.labels))
        if not own.requires_grad:
            return None
        length = distance(own, started)
        self.last = length.detach()
        return state.spec.loss.start_weight * length

    def measured(self, state: TrainingState) -> dict[str, Any]:
        """Return the distance of the last step."""
        return {} if self.last is None else {"start_distance": self.last}

    def state_tensors(self) -> dict[str, dict[str, Tensor]]:
        """Return the weights of the reference, except those of a shared backbone."""
        kept = self.reference.state_dict().items()
        return {"reference": {name: t for name, t in kept if not (self._shares and name.startswith(BACKBONE))}}

    def restore(self, state: TrainingState, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Restore the weights of the reference, if the checkpoint contains them."""
        if kept := checkpoint.select_prefix(tensors, "reference"):
            self.reference.load_state_dict(kept, strict=not self._shares)

    def fork(self, state: TrainingState, parent: Parent) -> list[str]:
        """Take over the reference of the parent; without one, the network at the start of the fork is the reference."""
        self.restore(state, parent.tensors, parent.facts)
        taken = any(name.startswith("reference.") for name in parent.tensors)
        return [] if taken else ["reference network for loss.start_weight, from this step"]


def distance(embeddings: Tensor, started: Tensor) -> Tensor:
    """Return the mean Euclidean distance (not squared) of embeddings from those of the initial network.

    The gradient is 0 where an embedding equals its initial value.

    Args:
        embeddings: Embeddings of the current network, (B, D).
        started: Embeddings of the same inputs by the initial network, (B, D).
    """
    length: Tensor = torch.linalg.vector_norm(embeddings - started.detach(), dim=1)
    return length.mean()


def _has_frozen_backbone(model: Network) -> bool:
    return isinstance(model, ImageNetwork) and model.frozen
