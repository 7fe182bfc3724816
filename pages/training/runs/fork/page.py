"""Fork page: continue a run from a checkpoint with a change, and compare the forks with their parent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import Run
from dmlcore.training.forks import fork_spec
from pages.shared.state import run_reader
from pages.shared.widgets import menu, results, run_picker, run_status, waiting
from pages.shared.words import sentences as words
from pages.shared.words import titles
from pages.training.runs.fork import form as form_view

MOST_FORKS = 4  # largest number of forks shown, newest first, in addition to the run and its parent
IDLE = 10.0  # seconds between two updates while none of the runs is active


def page() -> None:
    run = run_picker.head(
        "Continue with a change",
        "Continue from a checkpoint of this run with another loss, without a class, or with a corrected label. Such a "
        "**fork** draws the same batches as its parent, so only your change makes a difference.",
    )
    if run is None:
        return
    menu.link("runs", "Back to the run", {"run": run.id}, icon="arrow_back")
    steps = fork_spec.fork_steps(run)
    if not steps:
        st.info("This run has no checkpoint yet. Training writes the first one.", icon=":material/info:")
        return
    left, right = st.columns([2, 3], gap="large")
    with right:
        start = st.container(key="fork-outcome")
    with left:
        step = form_view.show(run, steps, start)
    with right:

        def busy() -> bool:
            return run_reader.busy(_family(run))

        waiting.live(lambda: show_family(run, step), busy, waiting.LOOK if busy() else IDLE)


def show_family(run: Run, step: int) -> None:
    """Show the scores of a run, its parent and its forks over the training steps.

    Vertical lines mark `step`, where the next fork would start, and the first steps of the existing forks.
    """
    family = _family(run)
    for other in family:
        if other.spec.fork.run:
            _show_fork(other)
    if len(family) < 2:
        st.caption("No forks yet. The dashed line is the step at which the new one would start.")
    else:
        st.caption("Parent and forks over the same steps. Dashed lines: first steps of the forks.")
    results.show(family, sorted({step, *(other.spec.fork.step for other in family if other.spec.fork.run)}))
    if len(family) > 1:
        ids = ",".join(other.id for other in family)
        menu.link("runs", "Compare them under Runs", {"run": ids})


def _family(run: Run) -> Sequence[Run]:
    parent = fork_spec.parent_of(run)
    return [*([parent] if parent else []), run, *fork_spec.children(run)[:MOST_FORKS]]


def _show_fork(run: Run) -> None:
    """Show one fork: the step it started from, its changed settings, and its newly initialised parameters."""
    status, fork = run.status(), run.spec.fork
    with st.container(border=True, key=f"fork-{run.id}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            run_status.literal(titles.label(run), "b")
            run_status.badge(status)
        row, state = _read_fork_row(str(run.path), status), run.state()
        if status == "running":
            done = state.step - fork.step, max(1, state.steps - fork.step)
            st.progress(min(1.0, max(0.0, done[0] / done[1])), f"step {state.step:,} of {state.steps:,}")
        if status in ("failed", "queued", "cancelled", "lost") or not row:
            st.text(words.plain(state.message or "waiting in the queue"))
        if row:
            changed = words.labels(key for key in row["changed"] if key not in words.UNSAID)
            carried, renewed = ", ".join(row["carried"]), ", ".join(row["anew"]) or "nothing"
            st.text(
                words.plain(
                    f"From step {fork.step:,} of {fork.run}. Changed: {changed}. Carried over: {carried}. "
                    f"Initialised again: {renewed}."
                )
            )
        with st.container(horizontal=True, vertical_alignment="center"):
            if run.embeddings():
                menu.inspect(run.id)
            if (run.path / LAST).exists():
                menu.link("fork", "Continue this fork", {"run": run.id})
            if run.embeddings() and fork_spec.parent_of(run):
                menu.link(
                    "differences", "Differences from its parent", {"run": fork.run, "before": "best", "other": run.id}
                )


@st.cache_data(max_entries=64, show_spinner=False, ttl=60)
def _read_fork_row(path: str, status: str) -> dict[str, Any] | None:
    """Return the row of metrics.jsonl that records the start of a fork; `status` is only part of the cache key."""
    return next((row for row in Run(Path(path)).metrics()[0] if row.get("kind") == "fork"), None)


page()
