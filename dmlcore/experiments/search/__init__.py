"""Search over the keys of a spec with Optuna: random, grid, TPE or Gaussian process, by validation MAP@R."""

from dmlcore.experiments.search.space import Dimension, Method, SearchSpace, parse, prepare
from dmlcore.experiments.search.trials import (
    TrialRow,
    as_text,
    best,
    conduct,
    score,
    trials,
    url_of,
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
    "parse",
    "prepare",
    "score",
    "trials",
    "url_of",
    "validation_baselines",
    "write_best",
]
