"""Confusions: which classes a network mixes up, how positives and negatives lie apart, and which samples are hubs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from dmlcore.inspection.neighbours import Learned
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run, RunStore
from pages._ui import (
    confusions_classes,
    confusions_distances,
    confusions_hubs,
    confusions_pairs,
    confusions_portrait,
    run_picker,
    words,
)
from pages._ui.confusions_data import View
from pages._ui.evaluated import evaluated
from pages._ui.learned import naming
from pages._ui.numbers import percent
from pages._ui.results import beside

VIEWS: dict[str, Callable[[View], None]] = {
    "pairs": confusions_pairs.show,
    "classes": confusions_classes.show,
    "distances": confusions_distances.show,
    "portrait": confusions_portrait.show,
    "hubs": confusions_hubs.show,
}
TITLES = {
    "pairs": "Class pairs",
    "classes": "Classes",
    "distances": "Distances",
    "portrait": "Phase portrait",
    "hubs": "Hubs",
}


def page() -> None:
    st.title("Confusions", anchor=False)
    st.markdown(
        "Where the embedding of the test part is wrong, as a whole: classes whose samples lie among each other, "
        "classes that fail, positives as far as negatives, samples that are everybody's neighbour."
    )
    run = run_picker.pick(RunStore())
    if run is None:
        return
    known = evaluated(run, "confusions")
    if known is None:
        return
    source, found = known
    browse(View(run, source, found, naming(run)))


@st.fragment
def browse(view: View) -> None:
    """The summary, the choice of a view, and the view."""
    _summary(view.run, view.found)
    chosen = st.segmented_control(
        "View",
        list(VIEWS),
        default="pairs",
        required=True,
        format_func=TITLES.__getitem__,
        key="view",
        bind="query-params",
        label_visibility="collapsed",
    )
    try:
        VIEWS[chosen or "pairs"](view)
    except Unreadable as error:
        st.error(words.plain(error), icon=":material/broken_image:")
    except ValueError as error:  # a part without two classes, or with none that has two samples
        st.info(words.plain(error), icon=":material/info:")


def _summary(run: Run, found: Learned) -> None:
    queries = int((~found.is_gallery).sum())
    searched = f", which search a gallery of {int(found.is_gallery.sum()):,}" if found.is_gallery.any() else ""
    st.markdown(
        f"**R@1 {percent(found.recall_at_1)}** · **MAP@R {percent(found.map_at_r)}** · {queries:,} test samples of "
        f"{len(np.unique(found.labels)):,} classes{searched}.{beside(run)}"
    )


page()
