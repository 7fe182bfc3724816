"""Miners, which select the triplets or pairs of a batch that a loss uses.

`create(name, **parameters)` returns a miner to call with embeddings and labels. `MINERS[name](table, labels)` applies a
miner to an existing distance matrix.
"""

from dmlcore.catalogue import discover, load_plugins
from dmlcore.mining.base import (
    ALL,
    MINERS,
    BatchMiner,
    Mined,
    Miner,
    Pairs,
    Triplets,
    create,
    describe,
    fits,
    names,
    on_distances,
)
from dmlcore.mining.by_distance import (
    batch_hard,
    easy_positive,
    easy_positive_semi_hard,
    hard,
    hard_negative,
    semi_hard,
    semi_hard_or_farthest,
    semi_hard_window,
    violating,
)
from dmlcore.mining.on_unit_sphere import distance_weighted, multi_similarity

discover(__name__, first=("triplets", "unit"))

__all__ = [
    "ALL",
    "MINERS",
    "BatchMiner",
    "Mined",
    "Miner",
    "Pairs",
    "Triplets",
    "batch_hard",
    "create",
    "describe",
    "distance_weighted",
    "easy_positive",
    "easy_positive_semi_hard",
    "fits",
    "hard",
    "hard_negative",
    "multi_similarity",
    "names",
    "on_distances",
    "semi_hard",
    "semi_hard_or_farthest",
    "semi_hard_window",
    "violating",
]


load_plugins()  # last, because plugins import this package
