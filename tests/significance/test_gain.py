"""Gain over the best untrained baseline: intervals, grouping of classes, and the word "gained"."""

from __future__ import annotations

import numpy as np
import pytest

from dmlcore.significance import gain as gains
from dmlcore.significance.verdicts import NAMES

random = np.random.default_rng(0)
LABELS = np.repeat(np.arange(40), 10)
BASE = random.uniform(0.2, 0.6, len(LABELS))


def row(values, labels=LABELS):
    groups = gains.sum_by_group(labels, {"map_at_r": values, "recall_at_1": np.round(values)})
    return {"map_at_r": float(np.nanmean(values)), "by_class": groups}


def test_sums_are_those_of_the_classes_and_skip_queries_without_a_match():
    values = BASE.copy()
    values[:3] = np.nan
    groups = row(values)["by_class"]
    assert groups["queries"] == [7] + 39 * [10]
    assert groups["map_at_r"][0] == pytest.approx(np.nansum(values[:10]), abs=1e-5)
    mean, low, high = gains.difference(groups, row(np.where(np.isnan(values), np.nan, 0.0))["by_class"])
    assert mean == pytest.approx(np.nanmean(values), abs=1e-6)
    assert low < mean < high


def test_many_classes_share_groups():
    many = np.repeat(np.arange(1200), 2)
    groups = row(np.full(len(many), 0.5), many)["by_class"]
    assert len(groups["queries"]) == gains.MOST_GROUPS
    assert sum(groups["queries"]) == len(many)


@pytest.mark.parametrize(
    ("shift", "words"),
    [(0.05, "gained over"), (0.0, "did not gain over"), (-0.05, "ended significantly below")],
)
def test_only_a_significant_difference_is_called_a_gain(shift, words):
    noise = random.normal(0, 0.02, 40)[LABELS]
    scores = {"inputs": row(BASE / 2), "whitened": row(BASE), "trained": row(BASE + shift + noise - noise.mean())}
    found = gains.gain(scores, started=True)
    assert found.baseline == "whitened"
    assert found.mean == pytest.approx(shift, abs=1e-5)
    assert f"Training {words} the best untrained baseline (whitened features, test MAP@R" in found.words
    assert found.short.startswith(f"Training {words} the best untrained baseline (whitened features, ")
    assert ("gained" in found.words) == (found.low > 0)
    assert ("−" in found.short) == (found.mean < 0)


def test_interval_is_that_of_the_difference_of_the_classes():
    noise = random.normal(0, 0.1, 40)
    _, low, high = gains.difference(row(BASE + noise[LABELS])["by_class"], row(BASE)["by_class"])
    assert (high - low) / 2 == pytest.approx(1.96 * noise.std() / np.sqrt(40), rel=0.15)


def test_a_network_with_pretrained_weights_is_named():
    scores = {"untrained": row(BASE), "trained": row(BASE)}
    assert gains.gain(scores, started=True).baseline == "pretrained"
    assert gains.gain(scores, started=False).baseline == "untrained"


def test_old_rows_and_unfinished_runs_have_no_verdict():
    assert gains.gain({"inputs": {"map_at_r": 0.1}, "trained": {"map_at_r": 0.2}}, started=False) is None
    assert gains.gain({"inputs": row(BASE)}, started=False) is None
    assert gains.gain({"inputs": row(BASE[:200], LABELS[:200]), "trained": row(BASE)}, started=False) is None
    assert {"features", "pca_whitened", "whitened"} <= NAMES.keys()
