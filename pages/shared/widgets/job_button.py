"""Button that starts a background job on a run, for pages that show the job's result, and the progress of that job."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dmlcore.jobs import launch
from dmlcore.jobs.launch import Job, JobName
from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import Run
from pages.shared.widgets import machines, menu, waiting
from pages.shared.widgets.error_boundary import attempt

_LABEL: dict[JobName, str] = {
    "evaluate": "Evaluate the checkpoint",
    "weigh": "Compute the weight maps",
    "snapshots": "Embed the kept checkpoints",
}
_DOING: dict[JobName, str] = {
    "evaluate": "Embedding the test split",
    "project": "Computing the map",
    "weigh": "Computing the weights of every test image",
    "snapshots": "Embedding the test split with each kept checkpoint",
    "project-over-training": "Computing the map over training",
    "true-step": "Taking the step and embedding the test split",
    "influence": "Repeating training steps",
    "search-all": "Searching for the neighbours of all queries",
}
LOGGED = (
    "This run was trained by another program, which ended without storing embeddings. Call `finish` there to see them."
)


def offer(run: Run, task: JobName, *, at_once: bool = False) -> None:
    """Show the progress of a run's training or active job; if there is none, show a button that starts the job `task`.

    If `at_once` is True, start `task` automatically, as `once` does.
    """
    if at_once:
        once(run, task)
    if busy(run, task):
        return
    failed(run, task)
    if run.is_logged:
        st.info(LOGGED, icon=":material/terminal:")
        menu.link("runs", "Open Runs", {"run": run.id})
        return
    if run.is_embedding_set and task != "project":
        st.info("An embedding set has no network, so it cannot be evaluated again. Import its vectors again instead.")
        return
    if task == "evaluate" and not (run.path / LAST).exists():
        st.info("This run ended before its first checkpoint, so there is nothing to show. Resume the run to continue.")
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
    """Start a job if the run is idle and this session has not yet started it for the run's current embeddings file."""
    tried, key = st.session_state.setdefault("jobs started automatically", set()), (run.embeddings(), run.id, task)
    if key not in tried and not run.is_busy() and not run.is_alive():
        tried.add(key)
        begin(run, task, settings)


def busy(run: Run, key: str, below: Callable[[], object] = lambda: None) -> bool:
    """Show the progress of the run's training or active job; return True if there is one.

    `below` draws partial results below the progress.
    """
    state = Job(run).state()
    return waiting.on_run(run, f"{key}-{run.id}", _DOING[state.task] if state else "", below)


def at_work(run: Run, task: JobName) -> bool:
    """Return True while the job `task` is queued or running on the run."""
    job = Job(run)
    state = job.state()
    return state is not None and state.task == task and job.is_busy()


def follow(run: Run, task: JobName, at_work: bool, below: Callable[[], object] = lambda: None) -> bool:
    """Show the progress of the job `task` while it is active; afterwards show its failure, if any.

    Returns True while the job is active. `at_work` tells if it was active when the page was drawn. `below` draws
    partial results.
    """
    if at_work and busy(run, task, below):
        return True
    failed(run, task)
    return False


def failed(run: Run, *tasks: JobName) -> None:
    """Show an error and the end of the log if the run's last job is one of `tasks` and has failed."""
    job = Job(run)
    state, status = job.state(), job.status()
    if state and state.task in tasks and status in ("failed", "lost"):
        st.error(f"{_DOING[state.task]} failed. Last lines of the log:", icon=":material/error:")
        waiting.log(job, 6)


def begin(run: Run, task: JobName, settings: str = "") -> None:
    """Start a job; show a toast with the reason if it cannot be started."""
    attempt(launch.start_job, run, task, settings, machines.chosen())
