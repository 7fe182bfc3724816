"""Last evaluation of a run: the embeddings file and the neighbours that the Inspection pages show."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run
from pages.shared.widgets import job_button
from pages.shared.widgets.test_neighbours import learned, outdated, refuse_other_data
from pages.shared.words import sentences as words


def evaluated(run: Run, what: str) -> tuple[Path, TestNeighbours] | None:
    """Return a run's newest embeddings file and the neighbours of its test samples.

    If the run has no readable evaluation, show a button that starts one and return None. `what` names the content of
    the page, for example "neighbours".
    """
    source = run.embeddings()
    if source is None:
        if not run.is_logged:
            st.markdown(f"This run has not been evaluated yet. Evaluate it to see its {what}.")
        job_button.offer(run, "evaluate")
        return None
    if outdated(run, source):
        st.caption("The run has been trained further since its last evaluation, which is shown below.")
        job_button.offer(run, "evaluate")
    try:
        searched = learned(source)
        refuse_other_data(run, source, searched)
        return source, searched
    except Unreadable as error:
        st.error(words.plain(error), icon=":material/broken_image:")
        job_button.offer(run, "evaluate")
        return None
