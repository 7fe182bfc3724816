"""The network as it started, frozen, to which a run may hold its embeddings (J_pre of Can 2018, Sec. 3.4)."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor

from dmlcore.models.networks import ImageNetwork, Network
from dmlcore.pooling import at_least_float32
from dmlcore.spec import RunSpec

BACKBONE = "backbone."


def of(model: Network, spec: RunSpec) -> Network | None:
    """A copy of a network as it is now, frozen for good; None where nothing is held to it.

    A frozen backbone is shared, as training does not change it.
    """
    if not spec.loss.start_weight:
        return None
    shared = {id(model.backbone): model.backbone} if _shares(model) else {}
    return copy.deepcopy(model, shared).eval().requires_grad_(False)


def distance(embeddings: Tensor, started: Tensor) -> Tensor:
    """Mean Euclidean distance, unsquared, of embeddings (B, D) from those of the same inputs at the start (B, D).

    J_pre of the source; its gradient is 0 where the two are equal. Source: Can 2018, Sec. 3.4.
    """
    length: Tensor = torch.linalg.vector_norm(embeddings - started.detach(), dim=1)
    return length.mean()


@torch.no_grad()
def embed(reference: Network, inputs: Tensor) -> Tensor:
    """Embeddings (B, D), at least float32, of inputs by the network as it started: no dropout, its own batch norm."""
    return at_least_float32(reference(inputs))


def tensors(reference: Network | None) -> dict[str, Tensor]:
    """What a checkpoint has to keep of it: all but a backbone that it shares."""
    if reference is None:
        return {}
    kept = reference.state_dict().items()
    return {name: tensor for name, tensor in kept if not (_shares(reference) and name.startswith(BACKBONE))}


def restore(reference: Network | None, kept: Mapping[str, Tensor]) -> bool:
    """Put back what `tensors` took; whether there was anything."""
    if reference is None or not kept:
        return False
    reference.load_state_dict(kept, strict=not _shares(reference))
    return True


def _shares(model: Network) -> bool:
    return isinstance(model, ImageNetwork) and model.frozen
