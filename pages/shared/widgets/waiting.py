"""Progress, log and cancel button of a running task, and a polling loop that updates them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from dmlcore.jobs.launch import Job
from dmlcore.storage import locks
from dmlcore.storage.runs import Run, RunError, RunState
from dmlcore.storage.task import ProgressState, Task
from pages.shared.widgets.run_status import BadgeColour
from pages.shared.words import sentences as words
from pages.shared.words.numbers import duration

LOOK = 1.0  # polling interval in seconds while a task is running
GOES_ON = "You may close this page; the work continues."
OUTSIDE = "Its embeddings appear here when that program stores them."
_ENDED: Mapping[str, tuple[str, BadgeColour]] = {
    "failed": ("The last attempt failed", "red"),
    "incomplete": ("Some runs failed; see the Runs page for the reasons", "red"),
    "cancelled": ("Cancelled. Finished work is kept, and the next attempt continues from there", "gray"),
    "lost": (
        "The last attempt was interrupted. Finished work is kept, and the next attempt continues from there",
        "gray",
    ),
}
Standing = Callable[[Any], tuple[float | None, str]]  # task state -> (completed fraction, text)


def live(draw: Callable[[], object], changes: Callable[[], object], every: float = LOOK) -> None:
    """Call `draw` now and every `every` seconds; rerun the whole page once the value of `changes()` changes."""
    st.fragment(_look, run_every=every)(draw, changes, changes())


def _look(draw: Callable[[], object], changes: Callable[[], object], before: object) -> None:
    try:
        if changes() != before:
            st.rerun()
        draw()
    except (RunError, OSError) as error:  # a run was deleted between two polls
        st.caption("A run has changed. Refreshing the page.")
        st.text(words.plain(error))


def wait(
    task: Task[Any],
    key: str,
    standing: Standing,
    *,
    then: str = GOES_ON,
    cancel: Callable[[], None] | None = None,
    changes: Callable[[], object] = lambda: None,
    below: Callable[[], object] = lambda: None,
) -> bool:
    """Show the progress of a task while it is queued or running, and rerun the page when the task ends.

    Returns True while the task is queued or running.

    Args:
        task: Task to show.
        key: Suffix of the widget keys.
        standing: Function that returns the completed fraction and a text for the task's state.
        then: Text below the progress bar.
        cancel: Callback of the cancel button, by default `task.cancel`.
        changes: Function that is called at each poll; the page is rerun if its return value changes.
        below: Function that draws partial results below the progress bar.
    """
    if not task.is_busy():
        return False

    def draw() -> None:
        if (state := task.state()) is not None:
            share, text = standing(state)
            asked = task.cancel_requested()
            with st.container(horizontal=True, vertical_alignment="center"):
                with st.container(width="stretch"):
                    st.progress(min(1.0, share or 0.0), "stopping after the current step" if asked else text)
                # no cancel button for a training run, which is cancelled on the Runs page
                if not isinstance(task, Run):
                    st.button(
                        "Cancel",
                        key=f"cancel-{key}",
                        icon=":material/stop_circle:",
                        disabled=asked,
                        on_click=cancel or task.cancel,
                        help="Stops after the current step and keeps finished work.",
                    )
                with st.popover("Log", icon=":material/notes:", key=f"log-{key}"):
                    log(task)
        st.caption(then)
        below()

    live(draw, lambda: (task.is_busy(), changes()))
    return True


def on_run(run: Run, key: str, doing: str, below: Callable[[], object] = lambda: None) -> bool:
    """Show the progress of a run's training or active job; return True if there is one. `doing` describes the job."""
    if run.is_logged and run.is_busy():
        return wait(run, key, lambda state: _of_run(state, doing, "Another program trains this run"), then=OUTSIDE)
    return wait(run if run.is_busy() else Job(run), key, lambda state: _of_run(state, doing), below=below)


def _of_run(state: RunState | ProgressState, doing: str, training: str = "The run is training") -> tuple[float, str]:
    if isinstance(state, RunState):
        text = f"{training}: step {state.step:,} of {state.steps:,}. This page updates when it ends."
        return state.step / max(1, state.steps), text
    seconds = min(locks.elapsed(state.queued, state.boot), 1e6)
    return state.done / (state.total or 1), f"{doing}, {duration(seconds)}: {state.message or 'about to start'}"


def counted(state: ProgressState, count: Callable[[float], str]) -> tuple[float | None, str]:
    """Return the completed fraction of a task that counts items, and a text with count, rate and time left.

    `count` formats a number of items as text, for example as a size in bytes.
    """
    total = f" of {count(state.total)}" if state.total else ""
    text = (
        f"{state.message.capitalize()}: {count(state.done)}{total}"
        if state.done or state.total
        else state.message or "about to start"
    )
    if state.rate > 0:
        text += f", {count(state.rate)} per second"
        if state.total:
            text += f", about {duration((state.total - state.done) / state.rate)} left"
    return (state.done / state.total if state.total else None), text


def ended(task: Task[Any]) -> None:
    """Show a badge and the error message if the task's last attempt did not succeed, and the log if it failed."""
    state, status = task.state(), task.status()
    if state is None or status not in _ENDED:
        return
    text, colour = _ENDED[status]
    st.badge(text, icon=":material/error:", color=colour)
    if status in ("failed", "incomplete"):
        st.text(words.plain(state.message))  # plain text, because it may contain names and paths
    if status in ("failed", "lost"):
        log(task, 6)


def log(task: Task[Any], lines: int = 30) -> None:
    """Show the last `lines` lines of a task's log, unmodified."""
    st.code("\n".join(task.log_tail(lines)) or "nothing yet", language=None, height=220 if lines > 10 else "content")
