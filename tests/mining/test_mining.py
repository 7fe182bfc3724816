"""Miners against plain loops over anchors, positives and negatives, and against pytorch-metric-learning."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from dmlcore import losses, mining
from tests.members import in_one_case

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(13, 2, generator=generator)
    x[3] = x[7]  # ties
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 0, 1, 0, 3, 0])  # class 3 has no positive
    return x, labels, torch.cdist(x, x)


def plain(name: str, d: torch.Tensor, labels: torch.Tensor) -> list[tuple[int, int, int]]:
    """Return the triplets by the definition of a miner, with plain loops."""
    n, found = range(len(labels)), []
    for a in n:
        positives = [j for j in n if j != a and labels[j] == labels[a]]
        negatives = [j for j in n if labels[j] != labels[a]]
        if not positives or not negatives:
            continue
        if name == "batch_hard":
            positives = [max(positives, key=lambda j: (d[a, j].item(), -j))]
        if name.startswith("easy_positive"):
            positives = [min(positives, key=lambda j: (d[a, j].item(), j))]
        for p in positives:
            if name == "semi_hard_or_farthest":
                allowed = [j for j in negatives if d[a, j] >= d[a, p]]
                found.append(
                    (a, p, min(allowed or negatives, key=lambda j: (d[a, j].item() if allowed else -d[a, j].item(), j)))
                )
                continue
            allowed = [j for j in negatives if d[a, j] > d[a, p]] if "semi_hard" in name else negatives
            if allowed:
                found.append((a, p, min(allowed, key=lambda j: (d[a, j].item(), j))))
    return found


DEFINED = (
    "semi_hard",
    "semi_hard_or_farthest",
    "hard_negative",
    "batch_hard",
    "easy_positive",
    "easy_positive_semi_hard",
)


@in_one_case(seed=range(5), name=DEFINED)
def test_a_miner_is_its_definition(name, seed):
    _, labels, d = batch(seed)
    mined = mining.MINERS[name](d, labels)
    assert list(zip(*(x.tolist() for x in mined), strict=True)) == plain(name, d, labels)
    assert all(x.dtype == torch.int64 for x in mined)


@in_one_case(name=DEFINED)
def test_a_loss_takes_what_a_miner_hands_over(name):
    x, labels, d = batch(1)
    mined = mining.MINERS[name](d, labels)
    loss = losses.create("facenet", m=0.3)
    expected = torch.stack([loss.clamped(x[a], x[p], x[n]) for a, p, n in plain(name, d, labels)]).mean()
    assert loss(x, labels, mined).item() == pytest.approx(expected.item(), rel=1e-5)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"\(3, 3\) like the labels"):
        mining.MINERS["semi_hard"](torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64))


def spread(seed: int, size: int = 24, dimension: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, dimension, generator=generator, dtype=torch.float64)
    return x, torch.randint(0, 5, (size,), generator=generator)


def as_set(indices: tuple[torch.Tensor, ...]) -> set[tuple[int, ...]]:
    found = list(zip(*(x.tolist() for x in indices), strict=True))
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.parametrize(
    ("name", "theirs", "margin"),
    [("semi_hard_window", "semihard", 0.3), ("violating", "all", 0.3), ("hard", "hard", 9)],
)
def test_windows_equal_those_of_pml(name, theirs, margin):
    from pytorch_metric_learning.distances import LpDistance
    from pytorch_metric_learning.miners import TripletMarginMiner

    for seed in range(3):
        x, labels = spread(seed)
        x[3] = x[5]
        distance = LpDistance(normalize_embeddings=False)
        expected = TripletMarginMiner(margin, theirs, distance=distance)(x, labels)
        ours = mining.create(name, **({} if name == "hard" else {"margin": margin}))(x, labels)
        assert as_set(ours) == as_set(expected)
        assert len(ours[0]) > 10


def test_windows_are_cut_into_parts_without_loss(monkeypatch):
    x, labels = spread(0)
    whole = mining.create("violating")(x, labels)
    monkeypatch.setattr(mining.by_distance, "CHUNK", 50)
    assert all(map(torch.equal, mining.create("violating")(x, labels), whole))


def test_batch_hard_equals_that_of_pml():
    from pytorch_metric_learning.distances import LpDistance
    from pytorch_metric_learning.miners import BatchHardMiner

    x, labels = spread(4)
    expected = BatchHardMiner(distance=LpDistance(normalize_embeddings=False))(x, labels)
    assert as_set(mining.create("batch_hard")(x, labels)) == as_set(expected)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.6])
def test_multi_similarity_equals_that_of_pml(epsilon):
    from pytorch_metric_learning.miners import MultiSimilarityMiner

    for seed in range(3):
        x, labels = spread(seed)
        labels[7] = 99  # no positive
        ours = mining.create("multi_similarity", epsilon=epsilon)(x, labels)
        expected = MultiSimilarityMiner(epsilon)(x, labels)
        assert as_set(ours[:2]) == as_set(expected[:2])
        assert as_set(ours[2:]) == as_set(expected[2:])


def test_distance_weighted_draws_as_its_weights_say():
    """Frequencies of one pair against the weights written out, and against draws of PML's miner."""
    from pytorch_metric_learning.miners import DistanceWeightedMiner

    generator = torch.Generator().manual_seed(0)
    x = F.normalize(torch.randn(9, 6, generator=generator) + 1.2)  # near: distances on both sides of the cutoff
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2])
    d = torch.cdist(x, x)
    weights = [
        0.0 if labels[j] == 0 or d[0, j] >= 1.4 else _weight(max(d[0, j].item(), 0.5), 6) for j in range(len(labels))
    ]
    expected = torch.tensor(weights) / sum(weights)
    draws, ours, theirs = 1500, torch.zeros(9), torch.zeros(9)
    miner, pml = mining.create("distance_weighted"), DistanceWeightedMiner()
    torch.manual_seed(1)
    positive = {(i, j) for i in range(9) for j in range(9) if i != j and labels[i] == labels[j]}
    for draw in range(draws):
        a, p, n = miner(x, labels, generator=generator)
        if draw < 50:
            assert as_set((a, p)) == positive
        assert (labels[a] != labels[n]).all()
        ours[n[(a == 0)]] += 1
    for _ in range(200):
        a, p, n = pml(x, labels)
        theirs.index_add_(0, n[a == 0], torch.ones_like(n[a == 0], dtype=torch.float32))
    assert (ours / draws - expected).abs().max() < 5 * 0.5 / math.sqrt(draws)
    assert (theirs / theirs.sum() - expected).abs().max() < 5 * 0.5 / math.sqrt(theirs.sum())


def _weight(d: float, dimension: int) -> float:
    return 1 / (d ** (dimension - 2) * (1 - d * d / 4) ** ((dimension - 3) / 2))


def test_a_random_miner_is_a_function_of_its_generator_and_draws_nothing_too_far():
    x = torch.tensor([[1.0, 0, 0], [0.9, 0.1, 0], [-1, 0, 0], [-0.9, 0.1, 0], [-0.95, 0, 0.2]])
    labels, miner = torch.tensor([0, 0, 1, 1, 2]), mining.create("distance_weighted")
    one, two = (miner(x, labels, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert all(map(torch.equal, one, two))
    assert set(one[0].tolist()) == {2, 3}  # all negatives of class 0 are farther than 1.4
    assert one[2].tolist() == [4, 4]


@pytest.mark.parametrize("batch", ["balanced", "uneven"])
def test_golden_semi_hard(batch):
    """Eq. 2.20 with cosines, and the form of Can 2018 with squared distances of raw embeddings."""
    x, labels = golden_batch(batch)
    unit = F.normalize(x, dim=1)
    cases = {c["name"]: c for c in GOLDEN["losses"] if c["batch"] == batch}
    facenet = losses.create("facenet", m=0.2, reduction="mean_valid")  # d^2 = 2 - 2 S: half of it has the margin 0.1
    value = facenet(unit, labels, mining.create("semi_hard")(unit, labels)) / 2
    assert value.item() == pytest.approx(cases["triplet_cos_semihard"]["value"], rel=1e-9)
    raw = losses.create("facenet", m=1.0)
    value = raw(x, labels, mining.create("semi_hard_or_farthest")(x, labels))
    assert value.item() == pytest.approx(cases["triplet_sq_semihard"]["value"], rel=1e-9)


def golden_batch(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    b = GOLDEN["batches"][name]
    i, d = (torch.arange(n, dtype=torch.float64) for n in (len(b["labels"]), b["dim"]))
    y, i, p = torch.tensor(b["labels"], dtype=torch.float64)[:, None], i[:, None], b["p"]
    x = 0.8 * torch.cos(1.7 * y + 0.9 * d * (y + 1) + p) + 0.9 * torch.sin(0.7 * i + 1.3 * d + 0.77 * i * d + 1 + p)
    return x, torch.tensor(b["labels"])


@in_one_case(labels=[[0, 0, 0], [0, 1, 2], [0], [0, 0, 1, 1]], name=mining.names())
def test_created_miners_keep_their_word(name, labels):
    """Check the kind of the results, without a graph, in any precision and for batches without a triplet."""
    x = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(0)).bfloat16().requires_grad_()
    mined = mining.create(name)(x, torch.tensor(labels), generator=torch.Generator().manual_seed(0))
    if name == mining.ALL:
        assert mined is None
        return
    assert len(mined) == {"triplets": 3, "pairs": 4}[mining.describe(name).gives]
    assert all(index.dtype == torch.int64 and index.ndim == 1 for index in mined)
    if labels != [0, 0, 1, 1]:
        assert [len(index) for index in mined] == [0] * len(mined)


def test_each_miner_has_what_a_form_shows():
    assert mining.names()[0] == mining.ALL
    for name in mining.names():
        found = mining.describe(name)
        assert found.title
        assert found.sentence.endswith(".")
        assert found.source
        assert found.parameters.keys() == found.defaults.keys()
        for key, slider in found.parameters.items():
            assert slider.low <= found.defaults[key] <= slider.high


def test_a_loss_says_which_miners_fit():
    assert mining.fits("all", losses.describe("cross_entropy"))
    assert not mining.fits("semi_hard", losses.describe("cross_entropy"))
    assert mining.fits("multi_similarity", losses.describe("ranking"))
    assert mining.fits("distance_weighted", losses.create("ranking"))


def test_refusals_name_the_culprit():
    with pytest.raises(KeyError, match=r"unknown miner 'no_such'; known: all, semi_hard"):
        mining.create("no_such")
    with pytest.raises(TypeError, match="semi_hard has no hyper-parameter margin; it has: none"):
        mining.create("semi_hard", margin=1)
    with pytest.raises(ValueError, match="violating: margin must be greater than 0"):
        mining.create("violating", margin=0)
