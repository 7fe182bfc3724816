"""The time left of a run and its duration."""

from __future__ import annotations

from collections import deque

from dmlcore.storage.runs import RunState
from pages.shared.state import time_left


def test_time_left_follows_the_steps_watched_not_the_slow_beginning():
    pace = deque(maxlen=time_left.PACE)
    states = [RunState(step=step, steps=300, seconds=100 + step) for step in (0, 1, 10, 10, 20)]
    said = [time_left.time_left(state, pace) for state in states]
    assert said == ["estimating the time left"] * 2 + ["5 min left"] * 2 + ["5 min left"]
    assert [step for step, _ in pace] == [0, 1, 10, 20]


def test_a_run_first_seen_late_is_judged_by_its_average():
    assert time_left.time_left(RunState(step=100, steps=300, seconds=10), deque()) == "20 s left"


def test_a_run_that_fell_back_to_its_checkpoint_starts_its_estimate_again():
    pace = deque([(50, 60.0), (90, 100.0)])
    assert time_left.time_left(RunState(step=40, steps=80, seconds=20), pace) == "20 s left"
