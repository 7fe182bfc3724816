"""Panel that lets new visitors train the default example with one click."""

from __future__ import annotations

import streamlit as st

from dmlcore.data import DataError
from dmlcore.spec import RunSpec
from pages.shared.state.spec_link import FIRST, presets
from pages.shared.widgets.spec_form import preflight
from pages.shared.words.numbers import duration
from pages.training.new_run.settings import steps


def show() -> None:
    """Show the task of the default example, its estimated training time, and a button that starts training."""
    spec = presets()[FIRST]
    try:
        summary = preflight.summary(spec.data, spec.seed)
    # for example, the cache cannot be written; the page reports the error below this panel
    except (DataError, OSError):
        return
    estimate = preflight.estimated(spec, summary)
    (_, learned), (_, asked) = summary.splits["train"], summary.splits["test"]
    takes = (
        f"about {duration(estimate.seconds)} on this machine"
        if estimate and estimate.seconds
        else "well under a minute"
    )
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="first-offer"):
        with st.container(width="stretch"):
            st.markdown(
                f"**First time? Train on unseen classes.** A network trains on {learned} characters of invented "
                f"alphabets. Then it is tested on {asked} characters it has **never seen**: can it tell which "
                f"drawings show the same character? Nothing to download, {takes}."
            )
        pressed = st.button("Train it now", key="train-first", type="primary", icon=":material/play_arrow:")
    steps.start(spec, pressed=pressed, button="first")


def fits(name: str, spec: RunSpec | None) -> bool:
    """Return True if `spec`, the spec in the form, is still the default example and `name` is its data set."""
    first = presets()[FIRST]
    return name == first.data.name and spec == first
