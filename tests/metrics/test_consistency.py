"""Rates of each class and OPIS by their definitions, and the transfer of a threshold."""

import numpy as np
import pytest

from dmlcore import metrics
from tests.metrics.test_verification import clusters, pairs


def test_class_rates_and_opis_by_definition() -> None:
    embeddings, labels = clusters(5, 4)
    labels = np.append(labels[:-1], 7)  # a class of one sample
    found = metrics.opis(embeddings, labels, points=5)
    similarities = pairs(embeddings, labels)[0]
    first, second = np.triu_indices(len(labels), 1)
    utility = np.full((6, 5), np.nan)
    for row, label in enumerate(np.unique(labels)):
        one, other = labels[first] == label, labels[second] == label
        for column, threshold in enumerate(found.rates.thresholds):
            accepted = similarities >= threshold
            fmr = accepted[one ^ other].mean()
            assert found.rates.fmr[row, column] == fmr
            if (one & other).any():
                tpr = accepted[one & other].mean()
                assert found.rates.tpr[row, column] == tpr
                utility[row, column] = 2 * tpr * (1 - fmr) / (tpr + 1 - fmr)
    assert found.score == pytest.approx(np.nanmean((utility - np.nanmean(utility, axis=0)) ** 2))
    assert np.isnan(found.per_class[-1])
    curve = metrics.verification(embeddings, labels)
    assert metrics.opis(embeddings, labels, points=5, curve=curve).score == found.score
    assert np.nanmean(found.per_class) == pytest.approx(found.score)


def test_a_threshold_for_seen_classes_gives_more_false_matches_on_closer_ones() -> None:
    seen = metrics.verification(*clusters(40, 8))
    like, closer = (metrics.verification(*clusters(40, 8, noise, seed=1)) for noise in (1.0, 0.2))
    alike = metrics.transfer(seen, like, 0.01)
    assert alike.threshold == seen.threshold_at(0.01)
    assert (alike.measured, alike.fnmr) == like.rates_at(alike.threshold)
    assert alike.threshold_interval.low <= alike.threshold <= alike.threshold_interval.high <= 1
    assert alike.fnmr_interval.low <= alike.fnmr <= alike.fnmr_interval.high
    assert alike.ratio_interval.low < 1 < alike.ratio_interval.high
    apart = metrics.transfer(seen, closer, 0.01)
    assert apart.interval.low <= apart.measured <= apart.interval.high
    assert apart.ratio > alike.ratio


def test_two_classes_on_either_side_leave_the_intervals_of_the_rates_unknown() -> None:
    two, many = metrics.verification(*clusters(2, 8)), metrics.verification(*clusters(9, 8))
    for seen, unseen in ((two, many), (many, two)):
        found = metrics.transfer(seen, unseen, 0.1)
        assert (found.interval, found.fnmr_interval, found.ratio_interval) == (None, None, None)
        assert (found.threshold_interval is None) == (seen is two)


def test_rates_that_cannot_be_had_are_refused() -> None:
    seen = metrics.verification(*clusters(4, 4))
    with pytest.raises(ValueError, match="more samples"):
        metrics.transfer(seen, seen, 1e-3)
    collapsed = metrics.verification(np.ones((8, 2)), np.arange(8) // 2)
    with pytest.raises(ValueError, match="have the highest similarity"):
        metrics.transfer(collapsed, seen, 0.5)
    with pytest.raises(ValueError, match="ascending"):
        metrics.class_rates(*clusters(4, 4), [0.5, 0.1])
