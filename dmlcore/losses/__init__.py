"""The catalogue of losses.

`losses.regions` is imported by itself: it loads scipy, which a training can do without.
"""

from __future__ import annotations

from typing import Any

from dmlcore.losses import triplets as triplets  # fills the catalogue
from dmlcore.losses.formula import CATALOGUE, TripletFormula
from dmlcore.losses.identities import Sameness, same_loss
from dmlcore.losses.triplet_loss import REDUCTIONS, TripletLoss

__all__ = [
    "REDUCTIONS",
    "Sameness",
    "TripletFormula",
    "TripletLoss",
    "create",
    "formula",
    "names",
    "same_loss",
]


def names() -> list[str]:
    """Every loss of the catalogue, in the order of the reference."""
    return list(CATALOGUE)


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
