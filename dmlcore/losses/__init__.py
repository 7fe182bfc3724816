"""The catalogue of losses.

`losses.regions` is imported by itself: it loads scipy, which a training can do without.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from dmlcore.losses import triplets as triplets  # fills the catalogue
from dmlcore.losses.batch import BatchFormula
from dmlcore.losses.catalogue import FORMULAS
from dmlcore.losses.formula import CATALOGUE, TripletFormula
from dmlcore.losses.identities import Sameness, same_loss
from dmlcore.losses.triplet_loss import REDUCTIONS, TripletLoss

__all__ = [
    "REDUCTIONS",
    "BatchFormula",
    "Sameness",
    "TripletFormula",
    "TripletLoss",
    "batch_names",
    "create",
    "describe",
    "for_training",
    "formula",
    "names",
    "same_loss",
]


def names() -> list[str]:
    """Every triplet loss of the catalogue, in the order of the reference: those that have a force field."""
    return list(CATALOGUE)


def batch_names() -> list[str]:
    """Every other loss one can train with: pairs, proxies, classes."""
    return list(FORMULAS)


def describe(name: str) -> TripletFormula | BatchFormula:
    """Title, LaTeX, source and hyper-parameters of any loss one can train with; KeyError lists the known names."""
    if name in FORMULAS:
        return FORMULAS[name]
    if name not in CATALOGUE:
        raise KeyError(f"unknown loss {name!r}; known: {', '.join([*CATALOGUE, *FORMULAS])}")
    return CATALOGUE[name]


def for_training(
    name: str, *, classes: int, embedding_dim: int, reduction: str = "mean_valid", **hyper: Any
) -> nn.Module:
    """Any loss as a module: forward(embeddings (B, embedding_dim), labels (B,) in 0..classes-1) -> scalar.

    reduction: of triplet losses; the others have their own. Raises KeyError, TypeError or ValueError that names the
    culprit.
    """
    found = describe(name)
    if not isinstance(found, BatchFormula):
        return create(name, reduction=reduction, **hyper)
    if reduction != "mean_valid":
        raise ValueError(f"reduction: {name} has its own; leave it at mean_valid, got {reduction}")
    sizes = {"classes": classes, "embedding_dim": embedding_dim} if found.proxies or found.sized else {}
    return found.build(**found.resolve(hyper), **sizes)


def formula(name: str) -> TripletFormula:
    """Title, LaTeX, source, hyper-parameters and pure function of a loss; KeyError lists the known names."""
    if name not in CATALOGUE:
        raise KeyError(f"unknown loss {name!r}; known: {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def create(name: str, **hyper: Any) -> TripletLoss:
    """The loss as a module: forward(embeddings (B, D), labels (B,), indices_tuple=None) -> scalar.

    hyper: the loss's own parameters, its margin (m or m1), the upper clamp m2 (None or inf = open), and
    reduction = "mean_valid" | "mean_nonzero" | "mean_raw". Raises KeyError, TypeError or ValueError naming the culprit.
    """
    return TripletLoss(formula(name), **hyper)
