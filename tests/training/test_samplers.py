import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlcore.training import samplers
from dmlcore.training.samplers import (
    BalancedSampler,
    MinedSampler,
    NeighbourhoodSampler,
    RandomSampler,
    batch_indices,
    neighbourhood_batch,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())

LABELS = st.lists(st.integers(-(2**40), 2**40) | st.integers(0, 6), min_size=4, max_size=60).map(np.array)


@given(labels=LABELS, samples=st.integers(1, 9), seed=st.integers(0, 2**32), step=st.integers(0, 2**31), data=st.data())
def test_a_batch_is_balanced_and_repeats_only_when_it_must(labels, samples, seed, step, data):
    values, sizes = np.unique(labels, return_counts=True)
    eligible = int((sizes > 1).sum())
    if eligible == 0:
        return
    classes = data.draw(st.integers(1, eligible))
    batch = batch_indices(labels, classes, samples, seed=seed, step=step)

    assert batch.shape == (classes * samples,)
    assert batch.dtype == np.int64
    groups = batch.reshape(classes, samples)
    drawn = labels[groups]
    assert (drawn == drawn[:, :1]).all()
    assert len(set(drawn[:, 0])) == classes
    size_of = dict(zip(values, sizes, strict=True))
    for group, label in zip(groups, drawn[:, 0], strict=True):
        size = size_of[label]
        assert size > 1
        uses = np.unique(group, return_counts=True)[1]
        assert len(uses) == min(size, samples)
        assert uses.max() - uses.min() <= 1


@given(seed=st.integers(0, 1000), step=st.integers(0, 1000))
def test_a_batch_depends_on_seed_and_step_alone(seed, step):
    labels = np.repeat(np.arange(20), 10)
    sampler = BalancedSampler(labels, 4, 8, seed=seed)
    sampler.batch(step + 1)
    assert np.array_equal(sampler.batch(step), batch_indices(labels, 4, 8, seed=seed, step=step))
    assert not np.array_equal(sampler.batch(step), sampler.batch(step + 1))
    assert not np.array_equal(sampler.batch(step), batch_indices(labels, 4, 8, seed=seed + 1, step=step))


def test_every_sample_is_drawn_about_equally_often():
    labels = np.repeat(np.arange(10), 20)
    sampler = BalancedSampler(labels, 5, 4, seed=0)
    uses = np.bincount(np.concatenate([sampler.batch(step) for step in range(2000)]), minlength=200)
    expected = 2000 * 20 / 200
    assert abs(uses - expected).max() < 5 * np.sqrt(expected)


def test_what_is_left_out_is_counted():
    sampler = BalancedSampler([0, 0, 0, 1, 2, 2, 3], 2, 3, seed=0)
    assert (sampler.left_out, sampler.repeating) == (2, 1)
    assert set(sampler.batch(0)) <= {0, 1, 2, 4, 5}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.0, 1.0], "labels must be"),
        ([[0, 0], [1, 1]], "labels must be"),
        ([], "labels must be"),
    ],
)
def test_labels_of_the_wrong_kind_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        BalancedSampler(labels, 1, 1, seed=0)


@pytest.mark.parametrize(("classes", "samples", "seed"), [(0, 2, 0), (1, 0, 0), (1, 1, -1)])
def test_numbers_out_of_range_are_refused(classes, samples, seed):
    with pytest.raises(ValueError, match="needs classes >= 1"):
        BalancedSampler([0, 0], classes, samples, seed=seed)


def small(seed: int = 0, count: int = 60, classes: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Return labels (N,) and a table of embeddings (N, 2) with two copies, in mixed order."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(count) % classes)
    table = random.normal(size=(count, 2)).astype(np.float32)
    table[7] = table[3]
    return labels, table


def test_a_random_batch_holds_different_samples_and_each_equally_often():
    labels, _ = small()
    sampler = RandomSampler(labels, 12, seed=1)
    batches = np.stack([sampler.batch(step) for step in range(2000)])
    assert all(len(set(batch)) == 12 for batch in batches.tolist())
    uses = np.bincount(batches.ravel(), minlength=60)
    assert abs(uses - 400).max() < 5 * 20
    assert np.array_equal(sampler.batch(3), RandomSampler(labels, 12, seed=1).batch(3))


@pytest.mark.parametrize("miner", MinedSampler.miners)
def test_mined_negatives_are_those_of_a_loop_over_the_whole_split(miner):
    labels, table = small()
    sampler = MinedSampler(labels, 60, seed=2, miner=miner)
    farthest = 0
    for step in range(12):
        indices, (a, p, n) = sampler.batch(step, table), sampler.tuples
        assert np.array_equal(indices, sampler.batch(step, table))
        assert len(indices) == 60
        assert len(set(indices[a])) == 20
        for anchor, positive, negative in zip(indices[a], indices[p], indices[n], strict=True):
            assert labels[anchor] == labels[positive]
            assert anchor != positive
            d = np.square(table.astype(np.float64) - table[anchor]).sum(1)
            others = [j for j in range(60) if labels[j] != labels[anchor]]
            allowed = others if miner == "hard_negative" else [j for j in others if d[j] > d[positive] + 1e-6]
            if allowed:
                assert d[negative] == pytest.approx(min(d[j] for j in allowed), rel=1e-4, abs=1e-5)
            else:
                farthest += 1
                assert d[negative] == pytest.approx(max(d[j] for j in others), rel=1e-4)
            assert labels[negative] != labels[anchor]
    assert (farthest > 0) == (miner != "hard_negative")


def test_a_mined_batch_depends_on_seed_step_and_table_alone():
    labels, table = small()
    sampler = MinedSampler(labels, 30, seed=5)
    sampler.batch(9, table)
    assert np.array_equal(sampler.batch(4, table), MinedSampler(labels, 30, seed=5).batch(4, table))
    assert not np.array_equal(sampler.batch(4, table), sampler.batch(4, table[::-1]))
    assert np.array_equal(sampler.batch(4, table)[:20], sampler.batch(4, table[::-1])[:20])  # anchors and positives


def test_classes_with_one_sample_are_only_negatives():
    labels = np.array([0, 0, 0, 1, 2, 2])
    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    sampler = MinedSampler(labels, 6, seed=0)
    assert sampler.left_out == 1
    for step in range(20):
        assert 3 not in sampler.batch(step, table)[:4]


def test_golden_neighbourhoods():
    """Replay the golden neighbourhoods with a fixed order of centres."""
    golden = GOLDEN["local_neighbourhood_sampling"]
    r, d = np.arange(20.0)[:, None], np.arange(2.0)
    table = np.sin(0.7 + 0.9 * r + 1.9 * d + 0.3 * r * d)
    batch = neighbourhood_batch(
        np.array(golden["labels"]), table, np.array(golden["centre_order"]), golden["N"], golden["K"]
    )
    assert batch.tolist() == golden["batch"]

    # Determine why each centre is accepted or rejected, by a plain loop over the order.
    labels, taken, trace = np.array(golden["labels"]), [], []
    for centre in golden["centre_order"]:
        squares = np.square(table - table[centre]).sum(1)
        nearest = sorted((other for other in range(20) if other != centre), key=lambda other: squares[other])
        group = [centre, *nearest[: golden["K"]]]
        own = [labels[other] == labels[centre] for other in group[1:]]
        mixed, apart = any(own) and not all(own), not set(group) & set(taken)
        trace.append([centre, "labels" if not mixed else "taken" if apart else "overlap"])
        taken += group if mixed and apart else []
        if len(taken) >= golden["N"]:
            break
    assert trace == golden["trace"]
    assert taken[: golden["N"]] == golden["batch"]


def test_a_neighbourhood_batch_is_made_of_mixed_neighbourhoods_that_do_not_meet():
    labels, table = small(count=300)
    sampler = NeighbourhoodSampler(labels, 25, 4, seed=3)
    for step in range(30):
        batch = sampler.batch(step, table)
        assert len(set(batch.tolist())) == 25
        for group in batch.reshape(5, 5):
            d = np.square(table.astype(np.float64) - table[group[0]]).sum(1)
            d[group[0]] = -1
            assert group.tolist() == np.lexsort((np.arange(300), d))[:5].tolist()
            own = labels[group[1:]] == labels[group[0]]
            assert own.any()
            assert not own.all()


def test_centres_return_only_in_the_next_epoch():
    labels, table = small(count=300)
    sampler = NeighbourhoodSampler(labels, 25, 4, seed=3)
    centres = [batch[::5].tolist() for batch in (sampler.batch(step, table) for step in range(12))]  # one epoch
    flat = [centre for batch in centres for centre in batch]
    assert len(flat) == 60
    assert len(set(flat)) > 0.9 * len(flat)  # a batch that needs more centres than its share reaches into the next


@pytest.mark.parametrize("table", [np.zeros((12, 2), np.float32), np.arange(24, dtype=np.float32).reshape(12, 2) ** 3])
@pytest.mark.parametrize("size", [5, 12])
def test_batches_are_filled_where_no_centre_would_do(table, size):
    """Collapsed embeddings, and classes so far apart that no neighbourhood contains two of them."""
    labels = np.repeat([0, 1], 6)
    batch = NeighbourhoodSampler(labels, size, 2, seed=0).batch(0, table)
    assert len(set(batch.tolist())) == size


@pytest.mark.parametrize("name", ["balanced", "random", "mined", "neighbourhood"])
def test_each_sampler_comes_by_its_name(name):
    labels, table = small()
    sampler = samplers.create(name, labels, 3, 4, seed=0, neighbours=5)
    batch = sampler.batch(1, table if sampler.uses_table else None)
    assert batch.shape == (12,)
    assert batch.dtype == np.int64
    if sampler.uses_table:
        with pytest.raises(ValueError, match="needs the table of embeddings"):
            sampler.batch(1)
        with pytest.raises(ValueError, match="must have 60 rows"):
            sampler.batch(1, table[:5])


@pytest.mark.parametrize(
    ("name", "labels", "options", "message"),
    [
        ("no_such", [0, 0, 1, 1], {}, "unknown sampler 'no_such'; known: balanced, random"),
        ("random", [0, 0, 1], {}, "a batch needs 4 samples, but there are 3"),
        ("random", [0, 0, 0, 0], {}, "needs two classes.*there are 1 classes"),
        ("mined", [0, 1, 2, 3], {}, "the largest with 1"),
        ("mined", [0, 0, 1, 1], {"miner": "all"}, "set miner.name to one of them, got 'all'"),
        ("neighbourhood", [0, 0, 1, 1], {"neighbours": 4}, "1 <= neighbours < 4"),
        ("balanced", [0, 0, 1, 2], {}, "needs 2 classes, but only 1 of 3"),
    ],
)
def test_what_cannot_be_drawn_is_said_before_the_start(name, labels, options, message):
    with pytest.raises(ValueError, match=message):
        samplers.create(name, labels, 2, 2, seed=0, **options)


def test_too_few_anchors_are_counted():
    with pytest.raises(ValueError, match="needs 3 anchors, but only 2 samples"):
        MinedSampler([0, 0, *range(1, 9)], 9, seed=0)
