"""Hyper-parameter search over the keys of a spec with Optuna, selected by validation score.

The methods are random search, grid search, one key at a time, TPE and Gaussian process.
"""

from dmlcore.experiments.search.space import Dimension, Method, SearchSpace, parse, prepare
from dmlcore.experiments.search.trials import (
    TrialRow,
    as_text,
    best,
    conduct,
    optima,
    score,
    storage_of,
    trials,
    validation_baselines,
    write_best,
)

__all__ = [
    "Dimension",
    "Method",
    "SearchSpace",
    "TrialRow",
    "as_text",
    "best",
    "conduct",
    "optima",
    "parse",
    "prepare",
    "score",
    "storage_of",
    "trials",
    "validation_baselines",
    "write_best",
]
