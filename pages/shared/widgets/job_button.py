"""A button for a job that makes what a page lacks, and a live line that waits for it; nothing is computed here."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import streamlit as st

from dmlcore.inspection import snapshots
from dmlcore.inspection.local import weight_maps
from dmlcore.jobs import device_queue, launch
from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import START_GRACE, Run, RunError, RunStore
from pages.shared.widgets import menu
from pages.shared.words import sentences as words

Task = Literal["evaluate", "project", "weigh", "snapshots"]
_START: dict[Task, Callable[[Run], None]] = {
    "evaluate": launch.evaluate,
    "project": launch.project,
    "weigh": launch.weigh,
    "snapshots": launch.snapshots,
}
_LABEL: dict[Task, str] = {
    "evaluate": "Evaluate the checkpoint",
    "project": "Compute the map",
    "weigh": "Compute the weight maps",
    "snapshots": "Embed the kept checkpoints",
}
_DOING: dict[Task, str] = {
    "evaluate": "Embedding the test part",
    "project": "Computing the t-SNE map",
    "weigh": "Reading the weights of every test image",
    "snapshots": "Embedding the test part with each kept checkpoint",
}


def offer(run: Run, task: Task, *, at_once: bool = False) -> None:
    """Say what is being waited for, or give the button that starts it; `at_once` presses it the first time."""
    tried = st.session_state.setdefault("jobs begun unasked", set())
    if at_once and not _busy(run) and (key := _key(run, task)) not in tried:
        tried.add(key)
        _begin(run, task)
    asked = st.session_state.get(_key(run, task))
    if _busy(run) or (asked and _starting(asked)):
        _wait(run.path, task, _products(run))
        return
    if asked:
        del st.session_state[_key(run, task)]
        if _products(run) == asked["before"]:
            st.error(f"{_DOING[task]} ended without a result. The last lines of the log:", icon=":material/error:")
            st.code("\n".join(run.log_tail(6)) or "the log is empty", language=None)
    if task == "evaluate" and not (run.path / LAST).exists():
        st.info("This run ended before its first checkpoint, so there is nothing to show; resume it to go on.")
        menu.link("runs", "Open Runs", {"run": run.id})
        return
    st.button(
        _LABEL[task],
        key=f"{task}-{run.id}" if task == "weigh" else task,
        type="primary",
        icon=":material/play_arrow:",
        on_click=_begin,
        args=(run, task),
    )


@st.fragment(run_every="1s")
def _wait(path: Path, task: Task, before: tuple[object, ...]) -> None:
    """One line that follows the worker; the whole page runs again once there is something new or nobody works."""
    run = Run(path)
    asked = st.session_state.get(_key(run, task))
    try:
        busy, state = _busy(run), run.state()
        if asked and busy:
            asked["seen"] = True
        if _products(run) != before or not (busy or (asked and _starting(asked))):
            st.rerun()
    except RunError:  # deleted
        st.rerun()
    if run.status() in ("queued", "running"):
        done = state.step / max(1, state.steps)
        st.progress(min(1.0, done), f"The run is training: step {state.step:,} of {state.steps:,}. This page waits.")
    else:
        doing = f"{_DOING[task]}, {time.monotonic() - asked['at']:.0f} s" if asked else "A job is working on this run"
        if place := device_queue.waiting(RunStore(path.parent), job=True).get(run.id):
            doing = (
                "Waiting until the job before it is over"
                if not place.ahead
                else f"Waiting, {place.ahead + 1} jobs before it"
            )
        st.info(f"{doing} …", icon=":material/hourglass_top:")


def _begin(run: Run, task: Task) -> None:
    try:
        _START[task](run)
    except (launch.JobError, RunError, OSError) as error:
        st.toast(words.plain(error), icon=":material/error:")
        return
    st.session_state[_key(run, task)] = {"at": time.monotonic(), "seen": False, "before": _products(run)}


def _busy(run: Run) -> bool:
    return run.alive() or run.status() == "queued"


def _starting(asked: dict[str, float]) -> bool:
    """Whether the worker may still be on its way: never seen, and asked for a moment ago."""
    return not asked["seen"] and time.monotonic() - asked["at"] < START_GRACE


def _products(run: Run) -> tuple[object, ...]:
    """What changes when a job has written something."""
    found = run.embeddings(), run.projection(), weight_maps.path_of(run), snapshots.newest_of_all(run)
    return tuple((path.name, path.stat().st_mtime_ns) for path in found if path)


def _key(run: Run, task: Task) -> str:
    return f"asked:{run.id}:{task}"
