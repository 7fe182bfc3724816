"""Time left and duration of a training run, as text."""

from __future__ import annotations

from collections import deque

from dmlcore.storage.runs import Run, RunState
from pages.shared.words.numbers import duration

PACE = 60  # number of latest (step, seconds) observations from which the training speed is computed


def time_left(state: RunState, pace: deque[tuple[int, float]]) -> str:
    """Return the time left, for example "2 min left"; also append the current (step, seconds) to `pace`.

    The estimate uses only recent steps, because the first steps of a run are slow.
    """
    if pace and (state.step, state.seconds) < pace[-1]:
        pace.clear()
    if not pace or state.step > pace[-1][0]:
        pace.append((state.step, state.seconds))
    step, seconds = pace[0] if pace[0][0] < state.step else (0, 0.0)
    if state.step - step < 3:
        return "estimating the time left"
    return f"{duration((state.seconds - seconds) / (state.step - step) * (state.steps - state.step))} left"


def took(run: Run, state: RunState, steps: str) -> str:
    """Return the text `steps` followed by how long the training took.

    The duration is omitted for the example run, because it was trained on another machine.
    """
    return steps if run.is_example else f"{steps} in {duration(state.seconds)}"
