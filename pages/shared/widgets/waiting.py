"""While a task works: how far it is, its log, a button that ends it, what follows; the one loop that looks again."""

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

LOOK = 1.0  # seconds between two looks while something works
GOES_ON = "You may close this page: it goes on."
_ENDED: Mapping[str, tuple[str, BadgeColour]] = {
    "failed": ("The last try failed", "red"),
    "incomplete": ("Some runs ended without a result; the page of the runs says why", "red"),
    "cancelled": ("Cancelled: what is done is kept, and the next try goes on from there", "gray"),
    "lost": ("The last try was interrupted: what is done is kept, and the next try goes on from there", "gray"),
}
Standing = Callable[[Any], tuple[float | None, str]]  # of a state: the share that is done, and words


def live(draw: Callable[[], object], changes: Callable[[], object], every: float = LOOK) -> None:
    """Draw now and every so many seconds; once `changes` answers otherwise than now, the whole page runs again."""
    st.fragment(_look, run_every=every)(draw, changes, changes())


def _look(draw: Callable[[], object], changes: Callable[[], object], before: object) -> None:
    try:
        if changes() != before:
            st.rerun()
        draw()
    except (RunError, OSError) as error:  # a run was removed while we looked at it
        st.caption("A run has changed meanwhile; looking again.")
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
    """Show a task while somebody works on it, and run the page again at its end; whether somebody does.

    then: what follows. cancel: what ends it, where that is more than its own `cancel`. changes: what else lets the page
    run again. below: draws what there is so far.
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
                if not isinstance(task, Run):  # a training run ends on the page of the runs
                    st.button(
                        "Cancel",
                        key=f"cancel-{key}",
                        icon=":material/stop_circle:",
                        disabled=asked,
                        on_click=cancel or task.cancel,
                        help="Ends after the current step and keeps what is done.",
                    )
                with st.popover("Log", icon=":material/notes:", key=f"log-{key}"):
                    log(task)
        st.caption(then)
        below()

    live(draw, lambda: (task.is_busy(), changes()))
    return True


def on_run(run: Run, key: str, doing: str, below: Callable[[], object] = lambda: None) -> bool:
    """Show what works on a run, its training or a job; whether anything does. doing: words for a job."""
    return wait(run if run.is_busy() else Job(run), key, lambda state: _of_run(state, doing), below=below)


def _of_run(state: RunState | ProgressState, doing: str) -> tuple[float, str]:
    if isinstance(state, RunState):
        text = f"The run is training: step {state.step:,} of {state.steps:,}. This page waits."
        return state.step / max(1, state.steps), text
    seconds = min(locks.elapsed(state.queued, state.boot), 1e6)
    return state.done / (state.total or 1), f"{doing}, {duration(seconds)}: {state.message or 'about to start'}"


def counted(state: ProgressState, count: Callable[[float], str]) -> tuple[float | None, str]:
    """How far a task is that counts what it does, with its pace and what is left."""
    total = f" of {count(state.total)}" if state.total else ""
    text = f"{state.message.capitalize()}: {count(state.done)}{total}" if state.done or state.total else state.message
    if state.rate > 0:
        text += f", {count(state.rate)} a second"
        if state.total:
            text += f", about {duration((state.total - state.done) / state.rate)} to go"
    return (state.done / state.total if state.total else None), text


def ended(task: Task[Any]) -> None:
    """How the last try ended, where it did not succeed: why, and the log of one that says nothing more."""
    state, status = task.state(), task.status()
    if state is None or status not in _ENDED:
        return
    text, colour = _ENDED[status]
    st.badge(text, icon=":material/error:", color=colour)
    if status in ("failed", "incomplete"):
        st.text(words.plain(state.message))  # may hold names and paths
    if status in ("failed", "lost"):
        log(task, 6)


def log(task: Task[Any], lines: int = 30) -> None:
    """The last lines of its log, as they are."""
    st.code("\n".join(task.log_tail(lines)) or "nothing yet", language=None, height=220 if lines > 10 else "content")
