"""Toggle for overlays of the pooling weights, and the button that computes missing weights."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dmlcore.pooling import describe
from dmlcore.storage.runs import Run, RunError
from pages.inspection.neighbours import service as gallery_service
from pages.shared.widgets import job_button
from pages.shared.words import sentences as words


def toggle(run: Run) -> None:
    """Show the toggle for overlays if the pooling of the run can weight positions differently."""
    if gallery_service.may_weigh(run):
        st.toggle(
            "Where the pooling looks",
            key="weights",
            bind="query-params",
            help="Overlays the weight of each local feature: bright where it is high, dark where it is low",
        )


def overlay(run: Run) -> Callable[[int], str]:
    """Return a function that maps a data set index to its overlay URL; it returns "" if the toggle is off."""
    return addresses(run) if shown() else _nothing


def shown() -> bool:
    """Return True if the overlay toggle is on."""
    return bool(st.session_state.get("weights"))


def addresses(run: Run) -> Callable[[int], str]:
    """Return a function that maps a data set index to its overlay URL; it returns "" for samples without weights.

    If the weights are missing, show a button that computes them.
    """
    if not gallery_service.may_weigh(run):
        return _nothing
    try:
        maps = gallery_service.maps_of(run)
    except (RunError, OSError) as error:
        st.text(words.plain(error))
        job_button.offer(run, "weigh")
        return _nothing
    if maps is None:
        st.markdown("The weights of the test images have not been computed yet.")
        job_button.offer(run, "weigh")
        return _nothing
    if not maps.weights.size:
        st.caption(
            f"{describe(run.spec.pooling.name).title} does not compute a weighted sum over positions, so it has no "
            "weight maps."
        )
        return _nothing
    h, w = maps.weights.shape[1:]
    st.caption(
        f"Each square is one of {h} × {w} local features; full brightness is {maps.full * h * w:.1f} times the average "
        "weight.",
        help="The receptive field of a feature is larger than its square. Black edges are cropped before the network.",
    )
    return gallery_service.addresses(run, maps)


def _nothing(index: int) -> str:
    return ""
