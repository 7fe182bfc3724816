"""Clustering scores against scikit-learn, plain loops and the golden partition."""

import itertools
import json
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from dmlcore.metrics import clustering, nmi, pairwise_f1
from dmlcore.metrics.clustering import is_affordable, k_means

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())["metrics"]
PARTITIONS = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-3, 6), min_size=n, max_size=n) for _ in range(2)])
)


def test_golden_partition():
    clusters, classes = GOLDEN["clusters"], GOLDEN["classes"]
    assert nmi(clusters, classes) == pytest.approx(GOLDEN["nmi_arithmetic"], abs=1e-12)
    assert nmi(clusters, classes, average="geometric") == pytest.approx(GOLDEN["nmi_geometric"], abs=1e-12)
    assert pairwise_f1(clusters, classes) == pytest.approx(GOLDEN["pairwise_f1"], abs=1e-12)


@given(PARTITIONS)
def test_nmi_is_that_of_scikit_learn_and_f1_that_of_all_pairs(partitions):
    clusters, labels = partitions
    for average in ("arithmetic", "geometric"):
        expected = normalized_mutual_info_score(labels, clusters, average_method=average)
        assert nmi(clusters, labels, average=average) == pytest.approx(expected, abs=1e-10)
    pairs = list(itertools.combinations(range(len(labels)), 2))
    both = [(clusters[i] == clusters[j], labels[i] == labels[j]) for i, j in pairs]
    tp, fp, fn = (sum(pair == kind for pair in both) for kind in ((True, True), (True, False), (False, True)))
    assert pairwise_f1(clusters, labels) == pytest.approx(2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 1.0)


def blobs(noise, classes=12, samples=9, offset=0.0):
    rng = np.random.default_rng(0)
    labels = np.arange(classes * samples) % classes
    return 10 * np.eye(classes)[labels] + offset + noise * rng.normal(size=(len(labels), classes)), labels


@pytest.mark.parametrize("offset", [0.0, 1e6], ids=["at the origin", "far off"])
def test_separated_classes_are_found_and_noise_is_not(offset):
    points, labels = blobs(0.1, offset=offset)
    assert k_means(points, 12).shape == labels.shape
    assert clustering(points, labels).nmi > 0.95
    noise = np.random.default_rng(1).normal(size=(600, 8))
    assert clustering(noise, np.arange(600) % 3).nmi < 0.02


def test_k_means_repeats_itself_and_heeds_its_seed(capfd):
    points = np.random.default_rng(2).normal(size=(400, 6)).astype(np.float32)
    first, again, other = (k_means(points, 30, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    k_means(points, 30, 2**64 - 1)  # seeds of a run are unsigned and longer than those of faiss
    assert capfd.readouterr() == ("", "")


def test_clusters_lie_at_their_own_means():
    """Check a fixed point of the algorithm: after 20 iterations on easy data no cluster changes."""
    points, _ = blobs(0.3)
    found = k_means(points, 12)
    means = np.stack([points[found == c].mean(axis=0) for c in np.unique(found)])
    nearest = np.linalg.norm(points[:, None] - means, axis=-1).argmin(axis=1)
    np.testing.assert_array_equal(np.unique(found)[nearest], found)


def test_degenerate_partitions_and_collapsed_points():
    assert nmi([0, 0, 0], [1, 1, 1]) == 1.0
    assert nmi([0, 0, 0, 0], [0, 0, 1, 1]) == 0.0
    assert pairwise_f1([0, 1, 2], [0, 1, 2]) == 1.0
    assert pairwise_f1([0, 0], [0, 1]) == 0.0
    assert clustering(np.full((20, 4), 0.3), np.arange(20) % 4).nmi <= 1.0
    assert clustering(np.eye(5), np.arange(5)).nmi == 1.0


def test_thousands_of_classes_need_no_table_of_all_pairs():
    labels = np.random.default_rng(3).permutation(np.arange(60_000) // 5)
    assert nmi(labels, labels) == pytest.approx(1.0, abs=1e-12)
    assert pairwise_f1(labels, labels) == 1.0


def test_what_is_too_large_is_told():
    assert is_affordable(5_924, 100, 512)
    assert not is_affordable(60_502, 11_316, 128)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clustering([[np.nan]], [0]), "embeddings must be finite"),
        (lambda: clustering(np.eye(3), [0, 1]), "labels must have shape"),
        (lambda: k_means(np.eye(3), 4), r"clusters must be in 1..3"),
        (lambda: nmi([0, 1], [0, 1], average="harmonic"), "average_method"),
        (lambda: nmi([0, 1], [0]), "clusters and labels must be"),
        (lambda: pairwise_f1([], []), "clusters and labels must be"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_threads_of_faiss_do_not_change_the_clusters():
    points = np.random.default_rng(4).normal(size=(1000, 16)).astype(np.float32)
    before = faiss.omp_get_max_threads()
    try:
        found = []
        for threads in (1, 2, 2):
            faiss.omp_set_num_threads(threads)
            found.append(k_means(points, 50))
    finally:
        faiss.omp_set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[1], found[2])
