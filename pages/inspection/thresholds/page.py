"""Thresholds page: from which similarity two samples count as the same class, and which errors this makes."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dmlcore.data import DataError
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import RunError
from pages.inspection.thresholds import service
from pages.inspection.thresholds.service import RunPairs
from pages.inspection.thresholds.state import ThresholdLook
from pages.shared.server import thumbnails
from pages.shared.widgets import menu, run_picker, selection
from pages.shared.widgets.component import component
from pages.shared.widgets.live_component import opened
from pages.shared.widgets.shown_run import ShownRun, headed, refuse_unlabelled
from pages.shared.words import sentences as words

KEY = "thresholds"
BASELINES = {
    "inputs": "raw inputs",
    "untrained": "untrained network",
    "features": "frozen features",
    "pca_whitened": "features, PCA-whitened",
    "whitened": "features, whitened",
}
PRETRAINED = "pretrained network"  # name of "untrained" if the run starts from pretrained weights
METHOD = """
- Two samples are accepted as the same class if the cosine similarity of their embeddings is at least the threshold.
- **False match rate**: share of the pairs of different classes that are accepted. **Missed matches** (false non-match
  rate): share of the pairs of the same class that are not accepted. Each pair is counted once.
- **Intervals** contain 95 % of 1,000 bootstrap samples of the classes, as pairs that share a class are not independent.
- The recommended threshold is the lowest one that keeps the promised false match rate on the **seen classes**. Its
  rates on **unseen classes** are those to expect; their intervals include the uncertainty of the threshold. Intervals
  next to the figure are for the threshold that is set there.
- Errors are sorted by similarity. A sample is repeated in a group only if there are not enough others.
"""
OF_RUN = """
- Seen classes are the validation classes: they choose the weights, but are not trained on. Unseen classes are the test
  classes.
"""
OF_SET = """
- Seen and unseen classes follow the split column of the set. Without one, they are the first and the second half of the
  classes.
"""
_canvas = component("inspection/thresholds")


def page() -> None:
    shown = headed(
        "thresholds",
        "Thresholds",
        "Decide from which similarity two images count as the same class, and see which errors this makes on classes "
        "that the network has never seen.",
        "Decide from which similarity two samples count as the same class, and see which errors this makes.",
    )
    if shown is None or refuse_unlabelled(shown, "pairs of the same class"):
        return
    try:
        with st.spinner("Counting pairs by similarity …", show_time=True):
            pairs = service.measure(shown.run, shown.source)
    except Unreadable as error:
        st.error(words.plain(error), icon=":material/broken_image:")
        return
    except ValueError as error:  # for example, each class has one sample
        st.info(words.plain(error), icon=":material/info:")
        return
    if pairs.reason:
        _explain(shown, pairs.reason)
    elif pairs.note:
        st.caption(f"{words.plain(pairs.note)}.")
    browse(shown, pairs)


def _explain(shown: ShownRun, reason: str) -> None:
    """Say why no threshold can be recommended, and what to do."""
    st.warning(f"No threshold can be recommended. {words.plain(reason).rstrip('.')}.", icon=":material/rule:")
    if not shown.run.is_embedding_set:
        menu.link("settings", "Train one like it", {"like": shown.run.id})
    st.caption(
        "The figure shows the pairs of all classes of this set."
        if shown.run.is_embedding_set
        else "The figure shows the pairs of the test classes alone."
    )


@st.fragment
def browse(shown: ShownRun, pairs: RunPairs) -> None:
    """Show the figure with its pairs, then the baselines. A fragment, so that links do not rerun the whole page."""
    run = shown.run
    if not run_picker.present(run):
        return
    event = _canvas(
        key=KEY,
        data={
            "address": pairs.address,
            "images": thumbnails.address(run),
            "parameters": selection.address(run),
            "look": opened(ThresholdLook).to_json(),
            "menus": ThresholdLook.menus(),
            "baselines": _baselines(shown, pairs),
            "set": run.is_embedding_set,
        },
        on_look_change=_follow_look,
        on_open_change=lambda: None,
        on_compute_change=lambda: None,
    )
    if event.get("compute") is True and not _wanted(run.id):
        st.session_state[_key(run.id)] = True
        st.rerun(scope="fragment")
    target = event.get("open")
    if isinstance(target, dict) and target.get("page") in ("failures", "explore"):
        given = {name: str(value) for name, value in target.items() if isinstance(value, int)}
        menu.go(target["page"], selection.address(run) | given)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            "Distances of pairs without a threshold, and of triplets, with the range of the loss:", width="content"
        )
        menu.link("confusions", "Distances in Confusions", {"run": run.id, "view": "distances"})
    with st.expander("Method", icon=":material/function:"):
        st.markdown(f"{METHOD}{OF_SET if run.is_embedding_set else OF_RUN}")


def _baselines(shown: ShownRun, pairs: RunPairs) -> dict[str, Any]:
    """Return the rows of the run and, if they are computed, of the baselines, and the text of the button."""
    if pairs.seen is None:
        return {"rows": [], "offer": ""}
    own = "this set" if shown.run.is_embedding_set else "this run"
    rows = [{"name": own, "recommended": [service.row(each) for each in pairs.recommended]}]
    if not _wanted(shown.run.id):
        return {"rows": rows, "offer": "Compute the baselines"}
    try:
        with st.spinner("Embedding the same classes without training …", show_time=True):
            made = service.baselines(shown.run.path, shown.source)
    except (RunError, DataError, Unreadable, ValueError) as error:
        st.warning(f"The baselines cannot be computed. {words.plain(error)}", icon=":material/error:")
        return {"rows": rows, "offer": ""}
    named = BASELINES | ({"untrained": PRETRAINED} if shown.run.spec.model.start else {})
    rows += [
        {"name": named.get(name, name), "recommended": [service.row(each) for each in recommended]}
        for name, recommended in made.items()
    ]
    return {"rows": rows, "offer": ""}


def _key(run: str) -> str:
    return f"threshold baselines {run}"


def _wanted(run: str) -> bool:
    return st.session_state.get(_key(run)) is True


def _follow_look() -> None:
    given = st.session_state[KEY].get("look")
    if isinstance(given, dict):
        look = ThresholdLook.of(given)
        for name in ThresholdLook.kinds:
            st.query_params.pop(name, None)
        st.query_params.update(look.to_query())


page()
