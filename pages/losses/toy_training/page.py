"""Toy training page: small networks trained live with one or two losses."""

from __future__ import annotations

import streamlit as st

from pages.losses.toy_training import service, state
from pages.losses.toy_training.presets import PRESETS, options
from pages.shared.widgets.live_component import Presentation, mount_timeline, opened
from pages.shared.words import glossary

LECTURE = Presentation(
    "Toy training",
    "{loss}: two training runs from one initialisation, with the same batches and clock.",
    ("time",),
    (
        "Left: the input. Then the embeddings of both losses, from the same data, seed and batches.",
        "Space plays and pauses; comma and full stop go batch by batch; Page Up and Down go by epoch.",
        "Press a class to see it alone; drag to rotate a 3-D view.",
        "Compare R@1 and MAP@R with those of the inputs: a tidy map may rank worse than the raw data.",
        "Controls, presets: photographs shows birds of unseen classes with their nearest neighbours.",
    ),
    "views",
)


@st.fragment
def canvas() -> None:
    """Mount the component that shows the training runs in the URL, with controls, curves and scores."""
    toy = opened(state.Toy, first=PRESETS[0])
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


st.title("Toy training", anchor=False)
st.markdown(
    "A small network maps points to a plane. Compare two losses or two poolings that train it on **the same data, seed "
    "and clock**. Pause, scrub back, or change a setting while it runs.",
    help=glossary.explain("embedding", "R@K", "MAP@R", "unseen classes", "GAP, GSP"),
)
canvas()
