"""Toy training: small networks that train live, with two losses side by side."""

from __future__ import annotations

import streamlit as st

from pages.losses.toy_training import service, state
from pages.losses.toy_training.options import options
from pages.losses.toy_training.presets import PRESETS
from pages.shared.widgets import misread_link
from pages.shared.widgets.component import mount_timeline
from pages.shared.widgets.presentation import Presentation

LECTURE = Presentation(
    "Toy training runs",
    "{loss}: two trainings from one start, with the same batches, on one clock.",
    ("time",),
    (
        "Left what the network sees, then what the two losses make of it: same data, same seed, same batches.",
        "Space plays and pauses, comma and full stop go batch by batch, Page Up and Down by epoch.",
        "Press a class to see it alone; drag to turn what is in space.",
        "Read R@1 and MAP@R beside those of the inputs: a map that looks tidy may rank worse than the raw data.",
        "Controls, presets: photographs shows birds of classes that no training saw, with their nearest neighbours.",
    ),
    "views",
)


@st.fragment
def canvas() -> None:
    """Mount the training runs of the URL with controls, curves and scores."""
    toy = misread_link.opened(state.Toy, first=PRESETS[0])
    recorded = toy == PRESETS[0].state(state.Toy)
    mount_timeline(
        "losses/toy_training",
        toy,
        service.TIMELINE,
        key="toy_training",
        recorded=recorded,
        present=LECTURE,
        options=options(),
    )


st.title("Toy training runs", anchor=False)
st.markdown(
    "A small network maps points to a plane. Watch two losses, or two poolings, train it on **the same data, seed and "
    "clock**; pause, scrub back, change a setting while it runs."
)
canvas()
