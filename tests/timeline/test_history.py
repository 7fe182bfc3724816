"""A history computes each requested frame once, and a fork reuses the frames that both specs share."""

from __future__ import annotations

import pytest

from tests.timeline.sums import Change, Spec, Sums

CHANGED = Spec(changes=(Change(4, 10),))


def test_frames_are_computed_once_and_in_order():
    history = Sums(Spec(5))
    assert history.recorded == -1
    assert history.frame(3) == [8]
    assert history.frame(1) is history.frames[1]
    assert history.recorded == 3


@pytest.mark.parametrize("step", [-1, 101])
def test_steps_out_of_range_are_refused(step):
    with pytest.raises(ValueError, match=rf"step must be in 0\.\.100, got {step}"):
        Sums(Spec()).frame(step)


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        (Spec(), 10),
        (CHANGED, 4),
        (Spec(changes=(Change(0, 1),)), 0),
        (Spec(changes=(Change(20, 1),)), 10),
        (Spec(1), 0),
    ],
)
def test_a_fork_shares_what_comes_before_the_first_difference(other, shared):
    parent = Sums(Spec())
    parent.frame(9)
    fork, fresh = parent.forked(other), Sums(other)
    assert len(fork.frames) == shared == parent.shared_with(other)
    assert all(mine is theirs for mine, theirs in zip(fork.frames, parent.frames, strict=False))
    assert fork.frame(12) == fresh.frame(12)
    assert fork.lock is not parent.lock
    assert parent.recorded == 9
