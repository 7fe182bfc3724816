"""Choice of a training step: the newest one while a run trains, or any earlier one with a slider."""

from __future__ import annotations

from typing import Literal

import streamlit as st


def choose_step(
    key: str,
    steps: list[int],
    goes_on: bool,
    follow: str = "Follow the newest step",
    label: Literal["visible", "collapsed"] = "visible",
) -> int:
    """Return the step to show: the newest if the visitor follows the run, otherwise the one chosen with the slider.

    The slider is hidden while the visitor follows the run: when new steps extend its range, the browser may send an
    outdated value as if the visitor had moved it.

    Args:
        key: Key of the slider in the session state.
        steps: Steps to choose from, ascending.
        goes_on: True while the run is queued or running, to show the toggle that follows it.
        follow: Label of the toggle.
        label: "collapsed" shows no label above the slider.
    """
    if len(steps) == 1 or (goes_on and st.toggle(follow, True, key=f"{key}-follow")):
        return steps[-1]
    if st.session_state.get(key) not in steps:
        st.session_state[key] = steps[-1]
    return int(st.select_slider("Step", steps, key=key, label_visibility=label))
