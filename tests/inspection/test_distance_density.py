"""Distances and triplets of a test split compared with an enumeration of all pairs and triplets."""

import itertools
import math

import numpy as np
import pytest
import torch

from dmlcore import losses
from dmlcore.inspection import distance_density
from dmlcore.metrics import retrieval
from dmlcore.spec import RunSpec
from tests.members import in_one_case


def scene(unit=True, n=36):
    random = np.random.default_rng(3)
    labels = np.append(random.integers(4, size=n - 1) + 5, 50)  # the last sample is alone in its class
    x = random.normal(size=(n, 6)) + labels[:, None] % 3
    x[1], labels[1] = x[0], labels[0]  # a duplicate
    return (x / np.linalg.norm(x, axis=1, keepdims=True) if unit else x).astype(np.float32), labels


def split(n, gallery):
    return np.arange(n) % 3 == 0 if gallery else np.zeros(n, bool)


@pytest.mark.parametrize("gallery", [False, True])
@pytest.mark.parametrize("unit", [True, False])
def test_all_pairs_are_counted(unit, gallery, monkeypatch):
    monkeypatch.setattr(distance_density, "AT_ONCE", 7 if unit else 100)
    x, labels = scene(unit)
    searched = split(len(x), gallery)
    found = distance_density.measure(x, labels, searched)
    d = np.linalg.norm(x[:, None].astype(float) - x, axis=2)
    pool = searched if gallery else ~searched
    pairs = [(i, j) for i, j in itertools.permutations(range(len(x)), 2) if not searched[i] and pool[j]]
    # queries with a positive
    pairs = [(i, j) for i, j in pairs if any(labels[i] == labels[b] for a, b in pairs if a == i)]
    same = np.array([d[p] for p in pairs if labels[p[0]] == labels[p[1]]])
    other = np.array([d[p] for p in pairs if labels[p[0]] != labels[p[1]]])
    shown = found.distances
    assert shown.edges[-1] <= 2 if unit else shown.edges[-1] >= d.max()
    for values, counts, mean in (
        (same, shown.positives, shown.positive_mean),
        (other, shown.negatives, shown.negative_mean),
    ):
        assert counts.sum() == len(values)
        assert mean == pytest.approx(values.mean(), abs=1e-7)
        clear = np.abs(values[:, None] - shown.edges).min(1) > 1e-9  # distances at an edge between two bins
        assert np.abs(counts - np.histogram(values, shown.edges)[0]).sum() <= 2 * (~clear).sum()
    assert shown.all_positives
    assert shown.all_negatives
    shares = np.histogram(same, shown.edges)[0] / len(same), np.histogram(other, shown.edges)[0] / len(other)
    assert shown.overlap == pytest.approx(np.minimum(*shares).sum(), abs=0.05)
    if not gallery:
        assert found.nearest.violated == pytest.approx(1 - retrieval(x, labels, ks=(1,)).recall_at[1])


@pytest.mark.parametrize("gallery", [False, True])
def test_hardest_nearest_and_random_triplets(gallery, monkeypatch):
    monkeypatch.setattr(distance_density, "AT_ONCE", 7)
    x, labels = scene()
    searched = split(len(x), gallery)
    found = distance_density.measure(x, labels, searched, triplets=4000)
    x = x.astype(float)
    d = np.linalg.norm(x[:, None] - x, axis=2)
    everything = []
    for q in np.flatnonzero(~searched):
        pool = [r for r in range(len(x)) if (searched[r] if gallery else r != q)]
        same = [r for r in pool if labels[r] == labels[q]]
        other = [r for r in pool if labels[r] != labels[q]]
        everything += itertools.product([q], same, other)
        at = np.flatnonzero(found.hardest.rows[:, 0] == q)
        assert len(at) == (len(same) > 0)
        if len(at):
            assert found.hardest.d_ap[at] == pytest.approx(max(d[q, same]))
            assert found.nearest.d_ap[at] == pytest.approx(min(d[q, same]), abs=1e-9)
            assert found.hardest.d_an[at] == found.nearest.d_an[at] == pytest.approx(min(d[q, other]))
    assert found.anchors == found.queries == len(found.hardest)
    for kind in distance_density.KINDS:
        triplets = found.triplets(kind)
        a, p, n = triplets.rows.T
        assert set(map(tuple, triplets.rows.tolist())) <= set(everything)
        for values, (i, j) in ((triplets.d_ap, (a, p)), (triplets.d_an, (a, n)), (triplets.d_pn, (p, n))):
            assert values == pytest.approx(d[i, j], abs=1e-9)
    exact = np.array(everything)
    violated = (d[exact[:, 0], exact[:, 2]] < d[exact[:, 0], exact[:, 1]]).mean()
    assert found.random.violated == pytest.approx(violated, abs=4 * math.sqrt(violated * (1 - violated) / 4000))
    seen = np.unique(found.random.rows[:, 0], return_counts=True)[1] / 4000
    wanted = np.unique(exact[:, 0], return_counts=True)[1] / len(exact)
    assert seen == pytest.approx(wanted, abs=0.02), "all triplets are equally likely"


@in_one_case(name=["ranking", "facenet", "modified_entangle", "npairs"])
def test_active_is_what_has_a_gradient(name):
    x, labels = scene(unit=name != "npairs")
    clamp = {"m2": 0.25} if name != "npairs" else {}
    loss = losses.create(name, **clamp)
    triplets = distance_density.measure(x, labels, triplets=200).random
    points = [torch.from_numpy(x[rows].astype(float)) for rows in triplets.rows.T]
    raw = loss.raw(*points)
    assert np.array_equal(triplets.active(loss), ((raw > 0) & (raw < loss.m2)).numpy())
    assert triplets.active(loss).mean() > 0
    assert triplets.active(losses.create(name, reduction="mean_raw")).all()


def test_many_samples_are_sampled_and_say_so():
    x, labels = scene()
    found = distance_density.measure(x, labels, pairs=10 * len(x), triplets=50)
    assert found.anchors == 10 < found.queries
    assert found.distances.all_positives
    assert not found.distances.all_negatives
    again = distance_density.measure(x, labels, pairs=10 * len(x), triplets=50)
    assert np.array_equal(found.random.rows, again.random.rows)
    few = distance_density.measure(x, labels, pairs=2 * len(x), triplets=50)
    assert not few.distances.all_positives
    assert few.anchors == 2


def test_without_a_triplet_it_says_so():
    with pytest.raises(ValueError, match="no sample has both"):
        distance_density.measure(np.eye(3, dtype=np.float32), [0, 0, 0])


def test_collapsed_embeddings_are_measured():
    found = distance_density.measure(np.ones((6, 3), np.float32), [0, 0, 0, 1, 1, 1], triplets=10)
    assert found.distances.positives[0] == 12
    assert found.distances.overlap == 1


def test_the_window_of_a_loss():
    ranking = losses.create("ranking", m=0.3, m2=0.4)
    ((low, high),) = distance_density.window(ranking, 0.5, 2.0)
    assert (low, high) == (pytest.approx(0.4, abs=2e-3), pytest.approx(0.8, abs=2e-3))
    assert distance_density.window(losses.create("ranking", m=-3.0), 0.5, 2.0) == []
    assert distance_density.loss_of(RunSpec().with_overrides(["loss.name=multi_similarity"])) is None
    known = distance_density.loss_of(RunSpec().with_overrides(["loss.parameters.m=0.4"]))
    assert known.margin == 0.4
