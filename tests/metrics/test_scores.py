"""Contract of every score of the catalogue; no score is named here."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dmlcore.metrics import SCORES, clustering, retrieval
from dmlcore.metrics.scores import scores
from dmlcore.storage import metrics_rows
from dmlcore.training import evaluation

every = pytest.mark.parametrize("name", SCORES)
LABELS = np.repeat(np.arange(4), 6)


def found(embeddings: torch.Tensor, labels: np.ndarray = LABELS) -> dict[str, float | None]:
    return scores(retrieval(embeddings, labels), clustering(embeddings, labels, 0))


def noisy(seed: int = 0, noise: float = 0.8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.eye(4)[LABELS] + noise * torch.randn(len(LABELS), 4, generator=generator)


@every
def test_classes_apart_score_1_and_mixed_ones_less(name):
    assert found(noisy(noise=0.01))[name] == pytest.approx(1)
    assert 0 <= found(noisy())[name] < 1


@every
def test_order_and_names_of_the_classes_do_not_matter(name):
    order = np.random.default_rng(0).permutation(len(LABELS))
    if not SCORES[name].clusters:  # k-means starts from samples drawn by their place
        assert found(noisy()[order], 9 - LABELS[order])[name] == pytest.approx(found(noisy())[name])
    assert found(noisy(), 9 - LABELS)[name] == pytest.approx(found(noisy())[name])


@every
def test_without_a_match_there_is_no_score_of_retrieval(name):
    alone = scores(retrieval(torch.eye(3), np.arange(3)))
    assert (name in alone) is not SCORES[name].clusters
    assert alone.get(name) is None


@every
def test_a_row_of_metrics_takes_it(name):
    row = evaluation.row("trained", 7, retrieval(noisy(), LABELS), clustering(noisy(), LABELS, 0))
    again = metrics_rows.from_line(metrics_rows.to_line(row))
    assert again is not None
    assert again[name] == row[name] == found(noisy())[name]


@every
def test_it_is_documented(name):
    score = SCORES[name]
    assert score.of.__doc__
    assert any(ch.isdigit() for ch in score.source), "a source must contain a year"
    assert [other.title for other in SCORES.values()].count(score.title) == 1
