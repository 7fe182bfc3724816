"""The first offer of Train: the default, which trains on unseen classes, in words that need no knowledge."""

from __future__ import annotations

import streamlit as st

from dmlcore.data import DataError
from dmlcore.spec import RunSpec
from pages.shared.state.spec_link import FIRST, presets
from pages.shared.widgets.spec_form import preflight
from pages.shared.words.numbers import duration
from pages.training.new_run.settings import steps


def show() -> None:
    """What is learned, what is asked, how long it takes here, and one button."""
    spec = presets()[FIRST]
    try:
        summary = preflight.summary(spec.data, spec.seed)
    except (DataError, OSError):  # of a cache that cannot be written: the data below say so
        return
    estimate = preflight.estimated(spec, summary)
    (_, learned), (_, asked) = summary.splits["train"], summary.splits["test"]
    takes = f"about {duration(estimate.seconds)} on this machine" if estimate else "well under a minute"
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="first-offer"):
        with st.container(width="stretch"):
            st.markdown(
                f"**First time? Train on unseen classes.** A network trains on {learned} characters of invented "
                f"alphabets. Then it is tested on {asked} characters it has **never seen**: which drawings show the "
                f"same one? Nothing to download, {takes}."
            )
        pressed = st.button("Train it now", key="train-first", type="primary", icon=":material/play_arrow:")
    steps.start(spec, pressed=pressed)


def fits(name: str, spec: RunSpec | None) -> bool:
    """Whether a visitor who looks at this data set has not chosen anything of his own yet."""
    first = presets()[FIRST]
    return name == first.data.name and spec == first
