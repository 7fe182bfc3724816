"""Conformance cases of miners, which compare the tuples selected by the printed rule and by dmlcore."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore import mining
from dmlcore.conformance.case import Case, Computation, Outcome, selection_masks
from dmlcore.conformance.printed import choices, pairs
from dmlcore.conformance.vectors import BALANCED, Vector

# Number of draws from the distance-weighted miner. Five standard deviations of a relative frequency are then 0.065.
DRAWS = 1500


def mined(formula: Callable[..., list[choices.Triple]], **options: object) -> Computation:
    """Return a function that selects the triplets of a batch by the printed rule `formula`."""
    return lambda v: selection_masks(len(v.labels), _columns(formula(v.embeddings, v.names, **options), 3))


def ours(name: str, **parameters: Any) -> Computation:
    """Return a function that selects triplets or pairs of a batch with a miner of dmlcore, on unit vectors."""

    def computed(v: Vector) -> Outcome:
        result = mining.create(name, **parameters)(F.normalize(v.embeddings), v.labels)
        assert result is not None
        return selection_masks(len(v.labels), *((result,) if len(result) == 3 else (result[:2], result[2:])))

    return computed


def _columns(tuples: Sequence[tuple[int, ...]], width: int) -> list[Tensor]:
    return list(torch.tensor(tuples, dtype=torch.int64).reshape(-1, width).T)


def _hard_pairs(v: Vector) -> Outcome:
    pull, push = choices.hard_pairs(v.embeddings, v.names, 0.1)
    return selection_masks(len(v.labels), _columns(pull, 2), _columns(push, 2))


def _chances(v: Vector) -> Outcome:
    """Return the probability with which each anchor draws each negative, according to the printed formula.

    It is proportional to the inverse density of distances between random points on the sphere, at the distance of the
    negative. Distances below 0.5 count as 0.5. Negatives at a distance of 1.4 or more have probability 0.
    """
    d, size, dimension = choices.table(v.embeddings), len(v.labels), v.embeddings.shape[1]
    chances = torch.zeros(size, size, dtype=torch.float64)
    for (i, j), far in d.items():
        if v.labels[i] != v.labels[j] and far < 1.4:
            far = max(far, 0.5)
            chances[i, j] = far ** (2 - dimension) * (1 - far**2 / 4) ** ((3 - dimension) / 2)
    return Outcome(0.0, {"chances": chances / chances.sum(1, keepdim=True)})


def frequencies(v: Vector, draw: Callable[[], Sequence[Tensor]], draws: int = DRAWS) -> Outcome:
    """Return the relative frequency with which each anchor draws each negative, over `draws` calls of `draw`."""
    drawn = torch.zeros(len(v.labels), len(v.labels), dtype=torch.float64)
    for _ in range(draws):
        a, _, n = draw()
        drawn.index_put_((a, n), torch.ones(len(a), dtype=torch.float64), accumulate=True)
    return Outcome(0.0, {"chances": drawn / drawn.sum(1, keepdim=True)})


def _draws_of_ours(v: Vector) -> Outcome:
    generator, unit = torch.Generator().manual_seed(0), F.normalize(v.embeddings)
    miner = mining.create("distance_weighted")

    def draw() -> Sequence[Tensor]:
        result: Sequence[Tensor] | None = miner(unit, v.labels, generator=generator)
        assert result is not None
        return result

    return frequencies(v, draw)


def miner(name: str, title: str, source: str, printed: Computation, **rest: Any) -> Case:
    """Create a conformance case of a miner."""
    return Case(name, "miner", title, source, printed, **rest)


MINERS = (
    miner(
        "all_triplets",
        "All triplets",
        "the definition of a triplet",
        lambda v: selection_masks(len(v.labels), _columns(list(pairs.triplets(v.names)), 3)),
    ),
    miner(
        "batch_hard",
        "Batch hard",
        "Hermans et al. 2017, Eq. 5",
        mined(choices.one_each, farthest=True),
        ours=ours("batch_hard"),
    ),
    miner(
        "easy_positive",
        "Easy positive, hard negative",
        "Xuan et al. 2020",
        mined(choices.one_each, farthest=False),
        ours=ours("easy_positive"),
    ),
    miner(
        "easy_positive_semi_hard",
        "Easy positive, semi-hard negative",
        "Xuan et al. 2020",
        mined(choices.one_each, farthest=False, semi_hard=True),
        ours=ours("easy_positive_semi_hard"),
    ),
    miner(
        "semi_hard",
        "Semi-hard, all within a margin",
        "Schroff et al. 2015",
        mined(choices.where, keep=lambda gap: 0 < gap <= 0.2),
        ours=ours("semi_hard_window", margin=0.2),
    ),
    miner(
        "hard",
        "Hard, all of them",
        "Schroff et al. 2015",
        mined(choices.where, keep=lambda gap: gap <= 0),
        ours=ours("hard"),
    ),
    miner(
        "violating",
        "All that violate a margin",
        "Weinberger & Saul 2009",
        mined(choices.where, keep=lambda gap: gap <= 0.2),
        ours=ours("violating", margin=0.2),
    ),
    miner(
        "hard_pairs",
        "Multi-similarity miner",
        "Wang et al. 2019, Eq. 11, 12",
        _hard_pairs,
        ours=ours("multi_similarity", epsilon=0.1),
    ),
    miner(
        "wide_angles",
        "Angles beyond a bound, unit vectors",
        "Wang, Zhou et al. 2017",
        mined(choices.wide_angles, degrees=35.0),
        variants={"the vectors are not normalised": mined(choices.wide_angles, degrees=35.0, raw=True)},
    ),
    miner(
        "distance_weighted",
        "Distance weighted: chances of the negatives",
        "Wu et al. 2017, Sec. 4",
        _chances,
        ours=_draws_of_ours,
        on=(BALANCED,),
        tolerance=0.065,
    ),
)
