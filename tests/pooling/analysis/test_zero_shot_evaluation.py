"""Zero-shot evaluation over class splits against golden/losses.json and a plain loop, and its invariances."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from dmlcore.pooling.analysis.zero_shot_evaluation import zero_shot_evaluation

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "losses.json").read_text())["zero_shot_evaluation"]
r, c = np.meshgrid(np.arange(4), np.arange(6), indexing="ij")
Z = np.exp(2 * np.sin(0.8 + 1.6 * r + 0.7 * c + 0.5 * r * c))
Z /= Z.sum(0)
MEANS = np.cos(0.1 + 0.8 * r[:3] + 1.5 * c[:3] + 0.3 * r[:3] * c[:3])


def test_golden_case():
    found = zero_shot_evaluation(Z.T, MEANS.T, np.arange(6), epsilon=GOLDEN["epsilon"]).exhaustive
    for accuracy, golden in ((found.held_out, "held_out_candidates"), (found.everything, "all_candidates")):
        assert accuracy.predictions == GOLDEN[golden]["predictions"]
        assert accuracy.l2 == pytest.approx(GOLDEN[golden]["accuracy_l2"], abs=1e-12)
        assert accuracy.cosine == pytest.approx(GOLDEN[golden]["accuracy_cosine"], abs=1e-12)
    assert (found.splits, found.held_out.chance, found.everything.chance) == (20, 1 / 3, 1 / 6)


def random_case(classes: int = 10, per_class: int = 4):
    random = np.random.default_rng(3)
    labels = np.repeat(np.arange(classes), per_class)
    typical = random.dirichlet(np.full(8, 0.3), classes)
    shares = 0.8 * typical[labels] + 0.2 * random.dirichlet(np.ones(8), len(labels))
    return shares, shares @ random.normal(size=(8, 5)) + 0.05 * random.normal(size=(len(labels), 5)), labels


def test_a_plain_loop_over_the_252_splits_of_ten_classes():
    shares, embeddings, labels = random_case()
    z, g = (np.stack([a[labels == k].mean(0) for k in range(10)]) for a in (shares, embeddings))
    hits = []
    for fitted in combinations(range(10), 5):
        rest = [k for k in range(10) if k not in fitted]
        seen = list(fitted)
        A = g[seen].T @ np.linalg.inv(z[seen] @ z[seen].T + 0.05 * np.eye(5)) @ z[seen]
        hits += [rest[int(np.argmin([np.linalg.norm(A @ z[k] - g[j]) for j in rest]))] == k for k in rest]
    found = zero_shot_evaluation(shares, embeddings, labels)
    assert (found.exhaustive.splits, len(hits)) == (252, 1260)
    assert found.exhaustive.held_out.l2 == pytest.approx(np.mean(hits))
    assert found.exhaustive.held_out.l2 > 0.3  # chance is 0.2: the shares do predict here


def test_draws_estimate_the_exhaustive_number():
    found = zero_shot_evaluation(*random_case(), draws=1000, seed=1)
    assert found.estimate.splits == 1000
    assert found.estimate.held_out.l2 == pytest.approx(found.exhaustive.held_out.l2, abs=0.04)
    assert found.estimate != zero_shot_evaluation(*random_case(), draws=1000, seed=2).estimate
    assert zero_shot_evaluation(*random_case()).estimate is None


def test_neither_the_order_of_samples_nor_the_names_of_classes_matter():
    shares, embeddings, labels = random_case(6)
    order = np.random.default_rng(0).permutation(len(labels))
    assert zero_shot_evaluation(shares[order], embeddings[order], labels[order] * 3 + 7).exhaustive == (
        zero_shot_evaluation(shares, embeddings, labels).exhaustive
    )


def test_too_many_splits_are_only_drawn():
    shares, embeddings, labels = random_case(18, 1)
    with pytest.raises(ValueError, match="48,620 splits"):
        zero_shot_evaluation(shares, embeddings, labels)
    found = zero_shot_evaluation(shares, embeddings, labels, draws=5)
    assert found.exhaustive is None
    assert found.estimate.splits == 5


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="embeddings and labels must have 2 rows"):
        zero_shot_evaluation(np.eye(2), np.eye(3), [0, 1])
    with pytest.raises(ValueError, match="at least two classes"):
        zero_shot_evaluation(np.eye(2), np.eye(2), [0, 0])
    with pytest.raises(ValueError, match="draws must be at least 1"):
        zero_shot_evaluation(np.eye(2), np.eye(2), [0, 1], draws=0)
