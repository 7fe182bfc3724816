"""Initialisation of the proxies of a loss with the mean embeddings of the training classes."""

from __future__ import annotations

import numpy as np
import torch

from dmlcore.losses.engine.batch_loss import ProxyLoss
from dmlcore.training.batches import embed
from dmlcore.training.errors import TrainingError
from dmlcore.training.state import TrainingState, embedder


def begin(state: TrainingState) -> None:
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
