"""Catalogue of losses: triplet losses, pair losses, proxy losses, classification losses and ensembles.

`losses.regions` is not imported here because it loads scipy, which training does not need.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from dmlcore.catalogue import discover, load_plugins
from dmlcore.losses.engine.batch_loss import BatchFormula
from dmlcore.losses.engine.formula import LOSSES, LossEntry, TripletFormula
from dmlcore.losses.engine.triplet_loss import REDUCTIONS, TripletLoss, create, formula, names

discover(
    __name__,
    first=(
        *(
            "triplets",
            "pairs",
            "hinges",
            "structured",
            "tuplets",
            "joint",
            "facility_location",
            "proxies",
            "proxy_pairs",
        ),
        *("classification", "ensembles"),
    ),
)

__all__ = [
    "LOSSES",
    "REDUCTIONS",
    "BatchFormula",
    "LossEntry",
    "TripletFormula",
    "TripletLoss",
    "batch_names",
    "create",
    "describe",
    "for_training",
    "formula",
    "names",
]


def batch_names() -> list[str]:
    """Return the names of all losses that are not triplet losses, such as pair, proxy and classification losses.

    Example:
        >>> from dmlcore import losses
        >>> losses.batch_names()[:4]
        ['contrastive', 'margin', 'multi_similarity', 'binomial_deviance']
    """
    return [name for name, entry in LOSSES.items() if isinstance(entry, BatchFormula)]


def describe(name: str) -> LossEntry:
    """Return the catalogue entry of a loss: title, LaTeX, source and hyper-parameters.

    Args:
        name: Name of any loss of the catalogue.

    Raises:
        KeyError: If the name is unknown; the message lists the known names.

    Example:
        >>> from dmlcore import losses
        >>> losses.describe("contrastive").title
        'Contrastive'
        >>> losses.describe("facenet").defaults
        {'m': 0.1, 'm2': inf}
    """
    return LOSSES[name]


def for_training(
    name: str, *, classes: int, embedding_dim: int, pooled_dim: int = 0, reduction: str = "mean_valid", **hyper: Any
) -> nn.Module:
    """Create a loss module for training; the module owns the class vectors of losses that learn such vectors.

    Args:
        name: Name of any loss of the catalogue.
        classes: Number of classes C.
        embedding_dim: Dimension D of the embeddings.
        pooled_dim: Dimension P of the features before the embedding layer. Needed only by losses that also read these
            features (`reads_pooled`). Such a loss is called with the additional argument `pooled` of shape (B, P).
        reduction: Reduction of a triplet loss, see `TripletLoss`. Other losses accept the default only, because each
            has its own reduction.
        hyper: Hyper-parameters of the loss.

    Returns:
        Module whose `forward(embeddings, labels, indices_tuple=None)` maps embeddings (B, D) and labels (B,) in 0..C-1
        to a scalar.

    Raises:
        KeyError: If the name is unknown.
        TypeError: If the loss has no such hyper-parameter.
        ValueError: If a hyper-parameter has an invalid value.

    Example:
        >>> import torch
        >>> from dmlcore import losses
        >>> loss = losses.for_training("contrastive", classes=2, embedding_dim=1)
        >>> embeddings, labels = torch.tensor([[0.0], [1.0], [2.0], [4.0]]), torch.tensor([0, 0, 1, 1])
        >>> loss(embeddings, labels).shape
        torch.Size([])
        >>> losses.for_training("proxy_nca", classes=2, embedding_dim=1).proxies.shape
        torch.Size([2, 1])

    Reference:
        `describe(name).source` cites the source of each loss.
    """
    info = describe(name)
    if not isinstance(info, BatchFormula):
        return create(name, reduction=reduction, **hyper)
    sizes = {"classes": classes, "embedding_dim": embedding_dim, "pooled_dim": pooled_dim}
    return info.build(**info.complete(hyper, reduction, **sizes), **{k: sizes[k] for k in info.sizes})


load_plugins()  # load plug-ins last, because they import this package
