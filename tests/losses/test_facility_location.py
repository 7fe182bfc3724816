"""Facility location against golden values, exhaustive search and the NMI of scikit-learn."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import normalized_mutual_info_score

from dmlcore import losses
from dmlcore.losses.facility_location import FacilityLocation, choose_facilities, find_medoids
from tests.members import in_one_case

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())
CASES = [c for c in GOLDEN["losses"] if c["name"] == "facility_location"]


def golden_batch(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    b = GOLDEN["batches"][name]
    i, d = (torch.arange(n, dtype=torch.float64) for n in (len(b["labels"]), b["dim"]))
    y, i, p = torch.tensor(b["labels"], dtype=torch.float64)[:, None], i[:, None], b["p"]
    x = 0.8 * torch.cos(1.7 * y + 0.9 * d * (y + 1) + p) + 0.9 * torch.sin(0.7 * i + 1.3 * d + 0.77 * i * d + 1 + p)
    return x.requires_grad_(), torch.tensor(b["labels"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["batch"])
def test_golden(case: dict) -> None:
    x, labels = golden_batch(case["batch"])
    value = losses.for_training("facility_location", classes=4, embedding_dim=5, **case["params"])(x, labels)
    value.backward()
    assert value.item() == pytest.approx(case["value"], rel=1e-9)
    assert x.grad.norm().item() == pytest.approx(case["grad"]["embeddings"]["norm"], rel=1e-8)
    i, d = torch.arange(12.0, dtype=torch.float64)[:, None], torch.arange(5, dtype=torch.float64)
    dot = (x.grad * torch.cos(0.3 * i - 0.8 * d + 0.2)).sum().item()
    assert dot == pytest.approx(case["grad"]["embeddings"]["dot"], rel=1e-8)
    distances = torch.cdist(x, x).detach().numpy()
    best = choose_facilities(distances, labels.numpy(), case["params"]["gamma"])
    assert best.chosen.tolist() == case["medoids"]
    cost = -distances[np.arange(12), best.assigned].sum()
    assert cost + case["params"]["gamma"] * best.disagreement == pytest.approx(case["score"], rel=1e-9)
    oracle = -distances[np.arange(12), find_medoids(distances, labels.numpy())].sum()
    assert oracle == pytest.approx(case["oracle"], rel=1e-9)


def score(distances: np.ndarray, labels: np.ndarray, chosen: list[int], gamma: float) -> float:
    """Compute F(S) + gamma (1 - NMI) by definition; a sample joins the first of equally near centres."""
    near = distances[:, chosen]
    return float(-near.min(1).sum() + gamma * (1 - nmi(labels.tolist(), near.argmin(1).tolist())))


def nmi(one: list[int], two: list[int]) -> float:
    """Compute NMI with the geometric mean from counts; 0 if an entropy is 0."""
    first, second, both = (
        -sum(n / len(one) * math.log(n / len(one)) for n in Counter(x).values())
        for x in (one, two, zip(one, two, strict=True))
    )
    return (first + second - both) / math.sqrt(first * second) if first * second > 1e-12 else 0.0


def plain_greedy(distances: np.ndarray, labels: np.ndarray, gamma: float) -> list[int]:
    chosen: list[int] = []
    for _ in set(labels.tolist()):
        scores = [
            score(distances, labels, [*chosen, j], gamma) if j not in chosen else -np.inf for j in range(len(labels))
        ]
        chosen.append(next(j for j, value in enumerate(scores) if value >= max(scores) - 1e-9))
    return chosen


@in_one_case(seed=range(4), gamma=[0.5, 5.0, 40.0])
def test_greedy_choice_is_that_of_a_plain_loop(seed: int, gamma: float) -> None:
    random = np.random.default_rng(seed)
    points, labels = random.normal(size=(18, 3)), random.integers(0, 5, 18) * 7 - 3
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    best = choose_facilities(distances, labels, gamma)
    assert best.chosen.tolist() == plain_greedy(distances, labels, gamma)
    known = normalized_mutual_info_score(labels, best.assigned, average_method="geometric")
    assert best.disagreement == pytest.approx(1 - known, abs=1e-9)


def test_greedy_equals_exhaustive_search_where_classes_are_clear() -> None:
    x, labels = golden_batch("balanced")
    distances = torch.cdist(x, x).detach().numpy()
    best = max(itertools.combinations(range(12), 4), key=lambda s: score(distances, labels.numpy(), list(s), 5.0))
    assert sorted(choose_facilities(distances, labels.numpy(), 5.0).chosen.tolist()) == sorted(best)


@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 1, 2, 3], [5, 5, 9, 9]])
def test_batches_of_any_kind_stay_finite(labels: list[int]) -> None:
    for points in (torch.zeros(4, 2), torch.eye(4)):
        x = points.clone().requires_grad_()
        value = FacilityLocation(5.0)(x, torch.tensor(labels))
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(x.grad).all()


def test_training_by_it_brings_the_classes_together() -> None:
    labels = torch.arange(24) % 3
    x = torch.randn(24, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = FacilityLocation(5.0)
    first = loss(x, labels).item()
    for _ in range(150):
        x.data -= 0.01 * torch.autograd.grad(loss(x, labels), x)[0]
    assert loss(x, labels).item() < 0.5 * first
