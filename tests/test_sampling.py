import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlcore.sampling import BalancedSampler, batch_indices

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
