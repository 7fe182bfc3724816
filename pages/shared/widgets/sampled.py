"""What the pages of Inspection say where not all queries were asked for their neighbours."""

from __future__ import annotations

import streamlit as st

from dmlcore.inspection.neighbours import TestNeighbours
from pages.shared.words.numbers import percent


def note(test: TestNeighbours) -> None:
    """Of how many queries the scores are, and how far off that may be; nothing where they are of all."""
    recall, precision = test.off(test.right[:, 0]), test.off(test.average_precision)
    if recall is None or precision is None:
        return
    st.caption(
        f"All these neighbours would take long, so {int(test.queries.sum()):,} queries drawn at random were each "
        f"searched "
        f"among all {len(test.labels):,} samples, exactly. Scores, failures and orders are theirs: of all queries, R@1 "
        f"is "
        f"this ± {percent(recall)} and MAP@R this ± {percent(precision)} (19 times of 20). Any other sample is "
        f"searched when "
        "it is shown."
    )
