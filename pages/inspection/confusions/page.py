"""Confusions page: confused classes, distances of positive and negative pairs, and hubs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run
from pages.inspection.confusions import classes as classes_view
from pages.inspection.confusions import density as density_view
from pages.inspection.confusions import distances as distances_view
from pages.inspection.confusions import hubs as hubs_view
from pages.inspection.confusions import pairs as pairs_view
from pages.shared.widgets import sampled
from pages.shared.widgets.score_context import beside
from pages.shared.widgets.shown_run import ShownRun, headed, refuse_unlabelled
from pages.shared.words import sentences as words
from pages.shared.words.labels import SCORES
from pages.shared.words.numbers import percent

# title and function of each view, by its name in links
VIEWS: dict[str, tuple[str, Callable[[ShownRun], None]]] = {
    "pairs": ("Class pairs", pairs_view.show),
    "classes": ("Classes", classes_view.show),
    "distances": ("Distances", distances_view.show),
    "portrait": ("Phase portrait", density_view.show),
    "hubs": ("Hubs", hubs_view.show),
}


def page() -> None:
    shown = headed(
        "confusions",
        "Confusions",
        "See which classes the network confuses, which classes fail, and which samples are neighbours of many queries.",
        "See which classes the embedding confuses, which classes fail, and which samples are neighbours of many "
        "queries.",
    )
    if shown is not None:
        browse(shown)


@st.fragment
def browse(view: ShownRun) -> None:
    """Show the scores of the run, the view selector, and the chosen view."""
    if refuse_unlabelled(view, "confusions of classes"):
        hubs_view.show(view)
        return
    _summary(view.run, view.test)
    chosen = st.segmented_control(
        "View",
        list(VIEWS),
        default="pairs",
        required=True,
        format_func=lambda name: VIEWS[name][0],
        key="view",
        bind="query-params",
        label_visibility="collapsed",
    )
    try:
        VIEWS[chosen or "pairs"][1](view)
    except Unreadable as error:
        st.error(words.plain(error), icon=":material/broken_image:")
    except ValueError as error:  # for example, the split has fewer than two classes, or no class with two samples
        st.info(words.plain(error), icon=":material/info:")


def _summary(run: Run, table: TestNeighbours) -> None:
    queries, about = int((~table.is_gallery).sum()), sampled.about(table)
    searched = f", searched in a gallery of {int(table.is_gallery.sum()):,}" if table.is_gallery.any() else ""
    st.markdown(
        f"**R@1 {about}{percent(table.recall_at_1)}** · **MAP@R {about}{percent(table.map_at_r)}** · {queries:,} "
        f"{'samples' if run.is_embedding_set else 'test samples'} of {len(np.unique(table.labels)):,} classes"
        f"{searched}.",
        help=f"{SCORES}\n\n{beside(run).strip()}",
    )
    sampled.note(run, table)


page()
