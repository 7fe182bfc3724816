"""Analyses of a tested run in addition to its scores: training scores, class overlap and zero-shot prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from dmlcore.data import Dataset
from dmlcore.data.synthetic.tokens import shared_tokens
from dmlcore.metrics import retrieval
from dmlcore.models.networks import MLP, ImageNetwork, Network, TokenNetwork
from dmlcore.storage.metrics_rows import Row
from dmlcore.training.batches import CHUNK, embed, evaluation_mode, to_device
from dmlcore.typing import Singles

if TYPE_CHECKING:
    from dmlcore.geometry.hulls import Overlaps

IMAGES = 64  # number of images per class whose local features are used
PROTOTYPES = 48  # number of prototypes that represent the local features (Gurbuz 2022, Sec. 4.2)
MOST_CLASSES = 32  # largest number of classes for which the overlap is computed
MOST_WITH_PROTOTYPES = 64  # the same for poolings that learn prototypes, whose runs ask about them
MOST_TRAINED = 20_000  # largest number of training samples for which the training split is scored
DRAWS = 1000  # number of random class splits, as in Gurbuz 2022; all possible splits are evaluated as well


def validation_rows(model: Network, data: Dataset, split: str, device: torch.device, step: int) -> list[Row]:
    """Return additional metrics rows for a validation; [] for networks other than `TokenNetwork`."""
    if not isinstance(model, TokenNetwork):
        return []
    return [{"kind": "validation_overlap", "step": step} | token_overlap(model, data, split, device)]


def rows(model: Network, data: Dataset, split: str, device: torch.device, step: int) -> list[Row]:
    """Return additional metrics rows for a test, of the kinds "overlap", "zero_shot" and "train" where they apply."""
    result: dict[str, dict[str, Any] | None] = {"train": train_scores(model, data, device)}
    if isinstance(model, TokenNetwork):
        result = {"overlap": token_overlap(model, data, split, device)}
    elif isinstance(model, ImageNetwork):
        most = MOST_WITH_PROTOTYPES if _has_prototypes(model) else MOST_CLASSES
        if 2 <= len(np.unique(data.labels[data.splits[split]])) <= most:
            overlap, predicted = image_overlap(model, data, split, device), zero_shot(model, data, split, device)
            result = {"overlap": overlap, "zero_shot": predicted}
    return [{"kind": kind, "step": step} | numbers for kind, numbers in result.items() if numbers is not None]


def train_scores(model: Network, data: Dataset, device: torch.device) -> dict[str, float | None] | None:
    """Return retrieval scores within the training split; None unless the network is an MLP and the split is small."""
    indices = data.splits["train"]
    if not isinstance(model, MLP) or len(indices) > MOST_TRAINED:
        return None
    scores = retrieval(embed(model, data, indices, device), data.labels[indices], ks=(1, 8))
    recall = {f"recall_at_{k}": value for k, value in scores.recall_at.items()}
    return recall | {"r_precision": scores.r_precision, "map_at_r": scores.map_at_r}


def bag_histograms(model: TokenNetwork, bags: Tensor) -> Singles:
    """Return the pooling weight of each token in each bag, (n, vocabulary); rows sum to 1.

    If the pooling has no weights of its own (average pooling, for example), all tokens of a bag count equally.

    Args:
        model: The network; it must have embedded `bags` in its last call.
        bags: Token ids (n, L).
    """
    own = getattr(model.pool, "weights", None)
    weights = own if own is not None and own.shape == bags.shape else torch.ones(bags.shape, device=bags.device)
    weights = weights.float() / weights.sum(1, keepdim=True)
    histograms = torch.zeros(len(bags), len(model.tokens), device=bags.device).scatter_add_(1, bags, weights)
    return histograms.cpu().numpy()


def token_overlap(model: TokenNetwork, data: Dataset, split: str, device: torch.device) -> dict[str, float]:
    """Compute the overlap of classes as convex hulls of their tokens, and the mean pooling weight of shared tokens."""
    from dmlcore.geometry.hulls import overlaps  # imported late because it loads scipy

    indices = data.splits[split]
    labels = np.unique(data.labels[indices], return_inverse=True)[1]
    tokens = model.tokens.detach().cpu().numpy()
    histograms = np.zeros((len(indices), len(tokens)), dtype=np.float32)
    with evaluation_mode(model):
        for start in range(0, len(indices), CHUNK):
            bags = to_device(data, indices[start : start + CHUNK], device)
            model(bags)
            histograms[start : start + CHUNK] = bag_histograms(model, bags)
    overlap = overlaps(tokens, histograms, labels)
    shared = shared_tokens(len(data.class_names))
    return _numbers(overlap) | {"shared_weight": float(histograms[:, shared].sum(1).mean())}


def image_overlap(model: ImageNetwork, data: Dataset, split: str, device: torch.device) -> dict[str, float] | None:
    """Compute the overlap of classes as convex hulls of the prototypes nearest to their local features.

    The prototypes are chosen by greedy k-centre from the local features of 64 images per class. An image is described
    by a histogram over prototypes, in which each local feature counts with its pooling weight. `bound_holds` is the
    share of images for which error <= mean distance <= radius, as defined in `PrototypeReading`. Returns None if the
    pooling is not a weighted mean of local features.
    """
    from dmlcore.geometry.hulls import overlaps
    from dmlcore.pooling.analysis.prototype_shares import read

    indices = data.splits[split]
    labels = data.labels[indices]
    few = np.concatenate([indices[labels == label][:IMAGES] for label in np.unique(labels)])
    features, weights = [], []
    with evaluation_mode(model):
        for chunk in np.split(few, range(CHUNK, len(few), CHUNK)):
            maps = model.features(to_device(data, chunk, device))
            local: Tensor | None = model.head.local(maps)
            model.head(maps)
            weight = getattr(model.pool, "weights", None)
            if local is None or weight is None:
                return None
            features.append(local.float().cpu().numpy())
            weights.append(weight.float().cpu().numpy())
    reading = read(np.concatenate(features), PROTOTYPES, np.concatenate(weights))
    overlap = overlaps(reading.prototypes, reading.histograms, data.labels[few])
    return _numbers(overlap) | {"bound_holds": float(reading.holds.mean()), "pictures": len(few)}


def zero_shot(model: ImageNetwork, data: Dataset, split: str, device: torch.device) -> dict[str, float] | None:
    """Compute the accuracy with which the class means of one half of the classes are predicted.

    A regression from prototype shares to embeddings is fitted to the other half of the classes.

    Accuracies are averaged over all splits of the classes into halves, or over DRAWS random ones if there are too many.
    Returns None for a pooling without prototypes, and before the prototypes are initialised.

    Reference:
        Gurbuz 2022, Sec. 5.3.
    """
    from dmlcore.pooling.analysis.zero_shot_evaluation import zero_shot_evaluation

    indices = data.splits[split]
    labels = data.labels[indices]
    if not _has_prototypes(model):
        return None
    embeddings, shares = [], []
    with evaluation_mode(model):
        for chunk in np.split(indices, range(CHUNK, len(indices), CHUNK)):
            embeddings.append(model(to_device(data, chunk, device)).float().cpu().numpy())
            pool: Any = model.pool
            shares.append(pool.shares.float().cpu().numpy())
    result = zero_shot_evaluation(np.concatenate(shares), np.concatenate(embeddings), labels, draws=DRAWS)
    assert result.estimate is not None
    best = result.exhaustive or result.estimate
    return {
        "splits": best.splits,
        "l2": best.held_out.l2,
        "cosine": best.held_out.cosine,
        "chance": best.held_out.chance,
        "l2_among_all": best.everything.l2,
        "l2_of_1000_draws": result.estimate.held_out.l2,
    }


def _has_prototypes(model: ImageNetwork) -> bool:
    """Return True if the pooling has learned prototypes that are already initialised."""
    return bool(getattr(model.pool, "ready", False))


def _numbers(overlaps: Overlaps) -> dict[str, float]:
    names = ("hull_iou", "histogram_intersection", "active_jaccard", "hull_separation")
    return {name: value for name in names if (value := overlaps.mean(name)) is not None}
