"""Runs are compared on the same queries only."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from dmlcore import data
from dmlcore.data.identities import identities
from dmlcore.inspection import comparison, neighbours
from tests.inspection.test_neighbours import write_embeddings


@pytest.fixture
def pair(tmp_path):
    """Return two runs on the same samples; the second has its rows in another order."""
    first = neighbours.read(write_embeddings(tmp_path / "a.npz", classes=8, n=100))
    order = np.random.default_rng(3).permutation(100)
    noisy = first.embeddings + np.random.default_rng(4).normal(size=first.embeddings.shape).astype(np.float32)
    np.savez(tmp_path / "b.npz", embeddings=noisy[order], labels=first.labels[order], indices=first.indices[order])
    return first, neighbours.read(tmp_path / "b.npz")


def test_queries_are_the_same_samples_in_every_run(pair):
    found = comparison.compare(pair)
    a, b = found.rows
    assert np.array_equal(pair[0].indices[a], pair[1].indices[b])
    assert not np.isnan(found.average_precision).any()
    assert found.rows.shape[1] == 99, "the sample without a match is no query"


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


def test_classes_are_paired_whatever_the_order_of_the_rows(pair):
    found = comparison.compare(pair)
    expected = [
        np.nanmean(pair[1].average_precision[pair[1].labels == label])
        - np.nanmean(pair[0].average_precision[pair[0].labels == label])
        for label in np.unique(pair[0].labels[found.rows[0]])
    ]
    assert found.by_class(0, 1) == pytest.approx(expected)
    assert found.by_class(1, 0) == pytest.approx(-np.array(expected))


def test_other_samples_are_refused_with_the_reason(pair):
    first, second = pair
    for changed, words in (
        (replace(first, indices=first.indices + 3), "99 are in both"),
        (replace(first, labels=first.labels[::-1]), "different labels"),
        (replace(first, is_gallery=~first.is_gallery), "different galleries"),
    ):
        with pytest.raises(comparison.Incomparable, match=f"run 2 .*{words}"):
            comparison.compare([first, changed])
    assert comparison.compare([first, second, first]).rows.shape == (3, 99)


def evaluated_on(data_set, content):
    """Return an evaluation of the first 50 test samples in the form that `compare` reads."""
    rows = data_set.splits["test"][:50]
    random = np.random.default_rng(0)
    return SimpleNamespace(
        indices=rows,
        labels=data_set.labels[rows],
        has_labels=True,
        is_gallery=np.zeros(50, bool),
        queries=np.ones(50, bool),
        average_precision=random.random(50),
        content=identities(data_set, rows) if content else None,
    )


@pytest.mark.parametrize("content", [True, False])
def test_drawn_data_of_another_seed_are_other_samples(content):
    toy, other, digits = data.load("toy"), data.load("toy", seed=1), data.load("digits", split="classes")

    def refuse(one, two):
        found = evaluated_on(one, content), evaluated_on(two, content)
        comparison.refuse_other_samples(*found, lambda: (one, two))
        comparison.compare(found)

    refuse(toy, data.load("toy"))
    refuse(digits, data.load("digits", split="classes", seed=1))  # this split is not random, so its seed has no effect
    with pytest.raises(comparison.Incomparable, match="50 of 50 have equal indices but different contents"):
        refuse(toy, other)
    with pytest.raises(comparison.Incomparable):
        refuse(digits, toy)


def test_drawn_birds_are_the_same_at_every_size():
    birds, small, other = (
        data.load("birds", image_size=s, seed=n, split="classes") for s, n in ((64, 0), (32, 0), (64, 1))
    )
    rows = np.arange(20)
    assert np.array_equal(identities(birds, rows), identities(small, rows))
    assert (identities(birds, rows) != identities(other, rows)).any(axis=1).all()


def test_other_files_are_other_samples(tmp_path):
    digits = data.load("digits_pictures")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for i in range(20):
            (tmp_path / name / f"{i}.png").write_bytes(b"x" * (i + 1))
    (tmp_path / "two" / "7.png").write_bytes(b"another image")
    keys = [f"{i}.png" for i in range(20)]
    one, two = (replace(digits, keys=keys, files=[tmp_path / n / key for key in keys]) for n in ("one", "two"))
    first, second = identities(one, np.arange(20)), identities(two, np.arange(20))
    assert np.flatnonzero((first != second).any(axis=1)).tolist() == [7]
    (tmp_path / "two" / "7.png").unlink()
    with pytest.raises(data.DataError, match=r"7\.png cannot be read"):
        identities(two, np.arange(20))
