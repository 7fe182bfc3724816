"""Frozen copy of the network at the start of a run, used to penalise how far embeddings move from their start.

The penalty is the term J_pre of Can 2018, Sec. 3.4.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor

from dmlcore.models.networks import ImageNetwork, Network
from dmlcore.pooling import at_least_float32
from dmlcore.spec import RunSpec

BACKBONE = "backbone."


def create(model: Network, spec: RunSpec) -> Network | None:
    """Return a frozen copy of the network in its current state, or None if `loss.start_weight` is 0.

    A frozen backbone is shared between network and copy, because training does not change it.
    """
    if not spec.loss.start_weight:
        return None
    shared = {id(model.backbone): model.backbone} if _shares(model) else {}
    return copy.deepcopy(model, shared).eval().requires_grad_(False)


def distance(embeddings: Tensor, started: Tensor) -> Tensor:
    """Return the mean Euclidean distance (not squared) of embeddings from those of the initial network.

    The gradient is 0 where an embedding equals its initial value.

    Args:
        embeddings: Embeddings of the current network, (B, D).
        started: Embeddings of the same inputs by the initial network, (B, D).

    Reference:
        Can 2018, Sec. 3.4 (J_pre).
    """
    length: Tensor = torch.linalg.vector_norm(embeddings - started.detach(), dim=1)
    return length.mean()


@torch.no_grad()
def embed(reference: Network, inputs: Tensor) -> Tensor:
    """Compute embeddings (B, D), at least float32, with the initial network in evaluation mode."""
    return at_least_float32(reference(inputs))


def tensors(reference: Network | None) -> dict[str, Tensor]:
    """Return the tensors that a checkpoint stores for the reference: all except those of a shared, frozen backbone."""
    if reference is None:
        return {}
    kept = reference.state_dict().items()
    return {name: tensor for name, tensor in kept if not (_shares(reference) and name.startswith(BACKBONE))}


def restore(reference: Network | None, kept: Mapping[str, Tensor]) -> bool:
    """Load tensors from `tensors` into the reference; return False if there is no reference or `kept` is empty."""
    if reference is None or not kept:
        return False
    reference.load_state_dict(kept, strict=not _shares(reference))
    return True


def _shares(model: Network) -> bool:
    return isinstance(model, ImageNetwork) and model.frozen
