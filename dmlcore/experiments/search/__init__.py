"""Search over the keys of a spec with Optuna: random, grid, one by one, TPE or Gaussian process, by validation."""

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
