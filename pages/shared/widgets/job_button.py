"""A button for a job that makes what a page lacks, in place of it how far the job is; nothing is computed here."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dmlcore.jobs import launch
from dmlcore.jobs.launch import Job, JobName
from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import Run, RunError
from pages.shared.widgets import machines, menu, waiting
from pages.shared.words import sentences as words

_LABEL: dict[JobName, str] = {
    "evaluate": "Evaluate the checkpoint",
    "weigh": "Compute the weight maps",
    "snapshots": "Embed the kept checkpoints",
}
_DOING: dict[JobName, str] = {
    "evaluate": "Embedding the test split",
    "project": "Making the map",
    "weigh": "Reading the weights of every test image",
    "snapshots": "Embedding the test split with each kept checkpoint",
    "project-over-training": "Making the map over training",
    "true-step": "Stepping and embedding the test split",
    "influence": "Taking steps of the training again",
    "search-all": "Searching for the neighbours of all queries",
}


def offer(run: Run, task: JobName, *, at_once: bool = False) -> None:
    """Say what is being waited for, or give the button that starts it; `at_once` presses it the first time."""
    if at_once:
        once(run, task)
    if busy(run, task):
        return
    failed(run, task)
    if task == "evaluate" and not (run.path / LAST).exists():
        st.info("This run ended before its first checkpoint, so there is nothing to show; resume it to go on.")
        menu.link("runs", "Open Runs", {"run": run.id})
        return
    st.button(
        _LABEL[task],
        key=f"{task}-{run.id}" if task == "weigh" else task,
        type="primary",
        icon=":material/play_arrow:",
        on_click=begin,
        args=(run, task),
    )


def once(run: Run, task: JobName, settings: str = "") -> None:
    """Begin a job unasked, once in a session for what there is of a run now, where nothing works on it."""
    tried, key = st.session_state.setdefault("jobs begun unasked", set()), (run.embeddings(), run.id, task)
    if key not in tried and not run.is_busy() and not run.is_alive():
        tried.add(key)
        begin(run, task, settings)


def busy(run: Run, key: str, below: Callable[[], object] = lambda: None) -> bool:
    """Show what works on a run, its training or a job; whether anything does. below: draws what there is so far."""
    state = Job(run).state()
    return waiting.on_run(run, f"{key}-{run.id}", _DOING[state.task] if state else "", below)


def at_work(run: Run, task: JobName) -> bool:
    """Whether this very job works on a run now."""
    job = Job(run)
    state = job.state()
    return state is not None and state.task == task and job.is_busy()


def follow(run: Run, task: JobName, at_work: bool, below: Callable[[], object] = lambda: None) -> bool:
    """Whether a job that was seen `at_work` still is, and is shown; else why the last one gave no result."""
    if at_work and busy(run, task, below):
        return True
    failed(run, task)
    return False


def failed(run: Run, *tasks: JobName) -> None:
    """Why the last job on a run gave no result, if it was one of these."""
    job = Job(run)
    state, status = job.state(), job.status()
    if state and state.task in tasks and status in ("failed", "lost"):
        st.error(f"{_DOING[state.task]} ended without a result. The last lines of the log:", icon=":material/error:")
        waiting.log(job, 6)


def begin(run: Run, task: JobName, settings: str = "") -> None:
    """Start a job; a refusal is said in passing."""
    try:
        launch.start_job(run, task, settings, machines.chosen())
    except (launch.JobError, RunError, OSError) as error:
        st.toast(words.plain(error), icon=":material/error:")
