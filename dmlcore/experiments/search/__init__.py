"""Hyper-parameter search with Optuna over the keys of a spec; trials are compared by validation score.

The methods are random search, grid search, variation of one key at a time, TPE and Gaussian processes.
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
