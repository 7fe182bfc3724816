"""Initialisation of the embedding layer by a linear method and a factor, and of the proxies by class means."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore.losses.engine.batch_loss import ProxyLoss
from dmlcore.models import linear_metrics
from dmlcore.models.networks import Network
from dmlcore.training.batches import embed
from dmlcore.training.errors import TrainingError
from dmlcore.training.objective import seed_of
from dmlcore.training.state import TrainingState, embedder


def begin(state: TrainingState) -> None:
    """Initialise the embedding layer with the linear method `model.embedding_start`, fitted to the layer's inputs.

    Raises:
        TrainingError: If the network has no linear embedding layer, or the method cannot be fitted.
    """
    method, layer = state.spec.model.embedding_start, _require_layer(state.model, "embedding_start", "random")
    train = state.data.splits["train"]
    entering: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, inputs: entering.append(inputs[0].detach()))
    try:
        embed(state.model, state.data, train, state.device)
    finally:
        handle.remove()
    features = torch.cat(entering).float().cpu().numpy()
    seed = seed_of(state.spec.seed, "embedding start") % 2**32
    try:
        weight, bias = linear_metrics.fit(
            method,
            features,
            state.data.labels[train],
            layer.out_features,
            seed=seed,
            shrinkage=state.spec.model.shrinkage,
        )
    except (ValueError, np.linalg.LinAlgError) as error:
        raise TrainingError(f"model.embedding_start: {error}") from None
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight))
        layer.bias.copy_(torch.from_numpy(bias))


@torch.no_grad()
def scale(model: Network, factor: float) -> None:
    """Multiply weights and bias of the embedding layer by `factor`, which multiplies all raw embeddings by it.

    Raises:
        TrainingError: If the factor is not 1 and the network has no linear embedding layer.
    """
    if factor != 1:
        layer = _require_layer(model, "embedding_scale", "1")
        layer.weight.mul_(factor)
        layer.bias.mul_(factor)


def set_proxies(state: TrainingState) -> None:
    """Set the proxy of each class to the mean embedding (D,) of its training samples, without augmentation.

    Classes without samples keep their random proxies. Means are not normalised.

    Raises:
        TrainingError: If the loss does not have exactly one proxy per class in the embedding space.
    """
    loss = state.loss.metric
    if not isinstance(loss, ProxyLoss) or loss.per_class != 1:
        raise TrainingError(
            f"loss.proxy_start: {state.spec.loss.name} does not have one proxy per class; set it to random, or choose "
            "proxy_nca or proxy_anchor"
        )
    train = state.data.splits["train"]
    embeddings, labels = embed(embedder(state), state.data, train, state.device), state.data.labels[train]
    with torch.no_grad():
        for label in np.unique(labels):
            loss.proxies[int(label)] = torch.from_numpy(embeddings[labels == label].mean(0))


def _require_layer(model: Network, key: str, neutral: str) -> nn.Linear:
    """Return the linear embedding layer; if there is none, raise TrainingError naming `key` and its neutral value."""
    layer = model.embedding_layer
    if layer is None:
        raise TrainingError(
            f"model.{key}: this network has no linear layer after its pooling; choose {neutral}, or another pooling"
        )
    return layer
