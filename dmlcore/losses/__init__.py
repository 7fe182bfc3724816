"""The catalogue of losses.

`losses.regions` is imported by itself: it loads scipy, which a training run can do without.
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
        *("triplets", "pairs", "hinges", "structured", "tuplets", "facility_location", "proxies", "proxy_pairs"),
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
    """Every other loss one can train with: pairs, proxies, classes.

    Example:
        >>> from dmlcore import losses
        >>> losses.batch_names()[:4]
        ['contrastive', 'margin', 'multi_similarity', 'binomial_deviance']
    """
    return [name for name, entry in LOSSES.items() if isinstance(entry, BatchFormula)]


def describe(name: str) -> LossEntry:
    """Title, LaTeX, source and hyper-parameters of any loss one can train with.

    Raises: KeyError that lists the known names.

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
    """Any loss as a module, with a vector per class where it learns such vectors.

    pooled_dim: of the features that the embedding layer takes, for a loss that reads them too (`reads_pooled`), which
    is then called with pooled=(B, pooled_dim). reduction: of triplet losses; the others have their own.

    Shapes: forward(embeddings (B, embedding_dim), labels (B,) in 0..classes-1, indices_tuple=None) -> scalar.
    Raises: KeyError, TypeError or ValueError naming the culprit.
    Source: that of each loss, `describe(name).source`.

    Example:
        >>> import torch
        >>> from dmlcore import losses
        >>> loss = losses.for_training("contrastive", classes=2, embedding_dim=1)
        >>> embeddings, labels = torch.tensor([[0.0], [1.0], [2.0], [4.0]]), torch.tensor([0, 0, 1, 1])
        >>> loss(embeddings, labels).shape
        torch.Size([])
        >>> losses.for_training("proxy_nca", classes=2, embedding_dim=1).proxies.shape
        torch.Size([2, 1])
    """
    info = describe(name)
    if not isinstance(info, BatchFormula):
        return create(name, reduction=reduction, **hyper)
    sizes = {"classes": classes, "embedding_dim": embedding_dim, "pooled_dim": pooled_dim}
    return info.build(**info.complete(hyper, reduction, **sizes), **{k: sizes[k] for k in info.sizes})


load_plugins()  # last, as they import this package
