"""Contract of every miner of the catalogue; no miner is named here."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from torch import Tensor

from dmlcore import losses, mining
from tests.members import in_a_case_each

every = pytest.mark.parametrize("name", mining.names())
LABELS = [4, 4, 4, 4, 7, 7, 7, 2, 2, 2, 2, 9, -3]  # unequal classes, two of them singletons
SMALL = [0] * 5, [0, 1, 2, 3], [0], [0, 0, 1, 1]
BATCHES = [(labels, place) for labels in (LABELS, *SMALL) for place in ("random", "one point")]


def batch(labels: list[int], seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(labels), 5, generator=generator, dtype=torch.float64), torch.tensor(labels)


def mined(name: str, embeddings: Tensor, labels: Tensor, **parameters: float) -> mining.Mined:
    return mining.create(name, **parameters)(embeddings, labels, generator=torch.Generator().manual_seed(1))


@in_a_case_each("given", dict.fromkeys(mining.names(), BATCHES))
def test_what_it_gives_are_valid_tuples_of_the_batch(name, given):
    labels, place = given
    embeddings, labels = batch(labels)
    found = mined(name, embeddings * (place == "random"), labels)
    gives = mining.describe(name).gives
    if gives == "everything":
        assert found is None
        return
    assert len(found) == {"triplets": 3, "pairs": 4}[gives]
    assert all(index.dtype == torch.int64 and index.ndim == 1 for index in found)
    a1, p, a2, n = found if gives == "pairs" else (found[0], found[1], found[0], found[2])
    assert len(a1) == len(p)
    assert len(a2) == len(n)
    assert (a1 != p).all()
    assert torch.equal(labels[a1], labels[p])
    assert (labels[a2] != labels[n]).all()
    chosen = list(zip(*(index.tolist() for index in found), strict=True)) if gives == "triplets" else []
    assert len(chosen) == len(set(chosen)), "every triplet must occur once"


@every
def test_whether_a_pair_may_get_more_negatives_is_declared(name):
    miner, found = mining.describe(name), mined(name, *batch(LABELS))
    if miner.gives == "triplets":
        pairs = Counter(zip(found[0].tolist(), found[1].tolist(), strict=True))
        assert (max(pairs.values()) > 1) is miner.many


@every
def test_it_finds_something_and_the_same_again_without_a_graph(name):
    embeddings, labels = batch(LABELS)
    found = [mined(name, x, labels) for x in (embeddings, embeddings.clone().requires_grad_(), embeddings)]
    if found[0] is not None:
        assert any(len(index) for index in found[0])
        assert all(torch.equal(x, y) for again in found[1:] for x, y in zip(found[0], again, strict=True))


@every
def test_the_losses_that_it_fits_take_what_it_gives(name):
    embeddings, labels = batch(LABELS)
    for loss in (losses.create("ranking"), losses.for_training("contrastive", classes=10, embedding_dim=5)):
        assert mining.fits(name, loss)
        value = loss(embeddings.requires_grad_(), labels, mined(name, embeddings, labels))
        value.backward()
        assert value.isfinite()


@every
def test_parameters_are_described_checked_and_used(name):
    miner = mining.describe(name)
    assert miner.title
    assert miner.sentence
    assert name == mining.ALL or any(ch.isdigit() for ch in miner.source), "a source must contain a year"
    embeddings, labels = batch(LABELS)
    for key, parameter in miner.parameters.items():
        assert parameter.help
        with pytest.raises(ValueError, match=f"{name}: {key}"):
            mining.create(name, **{key: math.nan})
        low, high = (mined(name, embeddings, labels, **{key: end}) for end in (parameter.low, parameter.high))
        assert [x.tolist() for x in low] != [x.tolist() for x in high], f"{key} has no effect"
    with pytest.raises(TypeError, match="no_such"):
        mining.create(name, no_such=1)
