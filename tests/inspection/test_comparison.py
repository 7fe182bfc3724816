"""Runs are compared on the same queries or not at all."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dmlcore import data
from dmlcore.inspection import comparison, learned
from tests.inspection.test_learned import written


@pytest.fixture
def pair(tmp_path):
    """Two runs on the same samples, the second with its rows in another order."""
    first = learned.read(written(tmp_path / "a.npz", classes=8, n=100))
    order = np.random.default_rng(3).permutation(100)
    noisy = first.embeddings + np.random.default_rng(4).normal(size=first.embeddings.shape).astype(np.float32)
    np.savez(tmp_path / "b.npz", embeddings=noisy[order], labels=first.labels[order], indices=first.indices[order])
    return first, learned.read(tmp_path / "b.npz")


def test_queries_are_the_same_samples_in_every_run(pair):
    found = comparison.compare(pair)
    a, b = found.rows
    assert np.array_equal(pair[0].indices[a], pair[1].indices[b])
    assert not np.isnan(found.average_precision).any()
    assert found.rows.shape[1] == 99, "the one without a match is no query"


def test_where_one_beats_the_other_by_difference(pair):
    found = comparison.compare(pair)
    wins = found.wins(0, 1)
    a, b = found.rows[:, wins]
    assert pair[0].right[a, 0].all()
    assert not pair[1].right[b, 0].any()
    gain = pair[0].average_precision[a] - pair[1].average_precision[b]
    assert (np.diff(gain) <= 0).all()
    both, first, second, none = found.counts(0, 1)
    assert (first, second) == (len(wins), len(found.wins(1, 0)))
    assert both + first + second + none == 99
    assert both + first == pair[0].right[found.rows[0], 0].sum()
    assert found.p_value(0, 1) == found.p_value(1, 0) < 1
    assert comparison.compare([pair[0], pair[0]]).p_value(0, 1) == 1


def test_the_test_is_the_binomial_one(pair):
    found = comparison.compare(pair)
    _, a, b, _ = found.counts(0, 1)
    pascal = [1]
    for _ in range(a + b):
        pascal = [1, *(x + y for x, y in pairwise(pascal)), 1]
    likely = [c for c in pascal if c <= pascal[a]]
    assert found.p_value(0, 1) == pytest.approx(sum(likely) / 2 ** (a + b))


def test_other_samples_are_refused_with_the_reason(pair):
    first, second = pair
    for changed, words in (
        (replace(first, indices=first.indices + 3), "share 99"),
        (replace(first, labels=first.labels[::-1]), "other labels"),
        (replace(first, is_gallery=~first.is_gallery), "another gallery"),
    ):
        with pytest.raises(comparison.Incomparable, match=f"run 2 .*{words}"):
            comparison.compare([first, changed])
    assert comparison.compare([first, second, first]).rows.shape == (3, 99)


def test_drawn_data_of_another_seed_are_other_samples():
    toy, indices = data.load("toy"), np.arange(50)
    comparison.refuse_other_samples(toy, data.load("toy"), indices)
    with pytest.raises(comparison.Incomparable, match="seeds differ"):
        comparison.refuse_other_samples(toy, data.load("toy", seed=1), indices)
    comparison.refuse_other_samples(data.load("digits"), data.load("digits", seed=1), indices)
    with pytest.raises(comparison.Incomparable, match="digits and toy"):
        comparison.refuse_other_samples(data.load("digits"), toy, indices)


def test_other_files_are_other_samples():
    digits = data.load("digits_pictures")
    names = [f"{i}.png" for i in range(len(digits.labels))]
    one, other = replace(digits, keys=names), replace(digits, keys=[*names[:7], "x.png", *names[8:]])
    comparison.refuse_other_samples(one, one, np.arange(20))
    with pytest.raises(comparison.Incomparable, match="pictures of digits_pictures differ"):
        comparison.refuse_other_samples(one, other, np.arange(20))
