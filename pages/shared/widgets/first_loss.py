"""Note that explains why pages open with the METU loss, and how it ranks in the study of all losses on Omniglot."""

from __future__ import annotations

from functools import cache
from statistics import fmean

import streamlit as st

from dmlcore.lessons.stages import StudyShown, bars_of
from pages.shared.plane.state import Scene
from pages.shared.widgets import menu
from pages.shared.words import titles

LOSS = Scene.loss
STUDY = "losses-omniglot"
QUERY = {"study": STUDY}


@cache
def sentence() -> str:
    """Return a sentence that explains why pages open with the METU loss and states its rank in the shipped results."""
    scores, _ = bars_of(StudyShown(STUDY))
    means = {name: fmean(values) for name, values in scores.items()}
    title = titles.loss_title(LOSS)
    rank = 1 + sum(mean > means[title] for mean in means.values())
    return (
        "The METU loss comes first because this lab was built to explain its force law, not because it retrieves best: "
        f"it ranks {rank} of {len(means)} losses in the Omniglot study "
        f"({100 * means[title]:.1f} % MAP@R; the best reaches {100 * max(means.values()):.1f} %)."
    )


def caption() -> None:
    """Show the text of `sentence` and a link to the study."""
    with st.container(horizontal=True, vertical_alignment="center", key="first_loss"):
        st.caption(sentence(), width="content")
        menu.link("studies", "All losses on Omniglot", QUERY)


def note() -> dict[str, str]:
    """Return the text of `sentence` as data for a component, which shows it next to the formula of the loss."""
    return {"loss": LOSS, "text": sentence(), "query": f"study={STUDY}"}
