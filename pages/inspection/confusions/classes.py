"""View of the scores of each class, worst first, as a table and as a chart."""

from __future__ import annotations

import numpy as np
import streamlit as st
from scipy.sparse import diags_array

from dmlcore.figures.confusions import ranking
from dmlcore.inspection import confusions
from pages.inspection.confusions import examples
from pages.inspection.confusions.service import confused
from pages.shared.widgets.chart import chart
from pages.shared.widgets.run_status import literal
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words.numbers import percent


def show(view: ShownRun) -> None:
    """Show the table and chart of the classes, then the queries of the class selected in the table."""
    learned = view.test
    scores = confusions.by_class(learned.labels, learned.average_precision, learned.right[:, 0])
    if not len(scores.labels):
        st.info("No class has two tested samples, so no class can be scored.", icon=":material/info:")
        return
    order = np.lexsort((scores.labels, scores.recall_at_1, scores.map_at_r))
    labels, value = scores.labels[order], scores.map_at_r[order]
    names = [view.name(int(label)) for label in labels]
    k = min(8, learned.neighbours.shape[1])
    taken = _taken_for(view, labels, k)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        table = st.dataframe(
            {
                "class": names,
                "queries": scores.queries[order],
                "MAP@R": value.round(3),
                "R@1": scores.recall_at_1[order].round(3),
                "most confused with": [view.name(other) if other is not None else None for other, _ in taken],
                "share": [None if share is None else round(share, 3) for _, share in taken],
            },
            key=f"by-class-{view.run.id}",
            hide_index=True,
            height=420,
            on_select="rerun",
            selection_mode="single-row",
            placeholder="–",
            column_config={
                "queries": st.column_config.NumberColumn(format="localized", width="small"),
                "MAP@R": st.column_config.ProgressColumn(format="percent", min_value=0.0, max_value=1.0),
                "R@1": st.column_config.ProgressColumn(format="percent", min_value=0.0, max_value=1.0),
                "share": st.column_config.NumberColumn(
                    format="percent", help=f"Share of that class among the {k} nearest neighbours of the queries"
                ),
            },
        )
        st.caption("Worst first. Click a column to sort by it, a row to see the queries of that class.")
    with right:
        chart(
            "ranking",
            ranking(names, value, scores.recall_at_1[order], scores.queries[order]),
            f"MAP@R and R@1 of {len(names)} classes, from {percent(value[0])} to {percent(value[-1])} MAP@R",
        )
        low, middle, high = np.percentile(value, [10, 50, 90])
        st.caption(
            f"MAP@R per class: median {percent(middle)}, 10th percentile {percent(low)}, 90th percentile "
            f"{percent(high)}. Mean over classes {percent(float(value.mean()))}, over queries "
            f"{percent(learned.map_at_r)}."
        )
    rows = table["selection"]["rows"]
    at = rows[0] if rows and rows[0] < len(labels) else 0
    _queries(view, int(labels[at]))


def _taken_for(view: ShownRun, labels: np.ndarray, k: int) -> list[tuple[int | None, float | None]]:
    """Return, for each class in `labels`, the class with which its queries are most often confused, and how often.

    The second value is the fraction of the k nearest neighbours that belong to this other class. Both values are None
    if all neighbours belong to the class itself.
    """
    with st.spinner("Counting neighbours by class …"):
        confusions = confused(view.source, k)
    shares = (confusions.shares - diags_array(confusions.shares.diagonal())).tocsr()
    most, share = confusions.classes[shares.argmax(axis=1)], shares.max(axis=1).toarray()
    places = np.searchsorted(confusions.classes, labels)
    return [(int(most[at]), float(share[at])) if share[at] > 0 else (None, None) for at in places]


def _queries(view: ShownRun, label: int) -> None:
    learned = view.test
    rows = np.flatnonzero((learned.labels == label) & ~learned.is_gallery & ~np.isnan(learned.average_precision))
    rows = rows[np.argsort(learned.average_precision[rows], kind="stable")]
    literal(f"Queries of “{view.name(label)}”, worst first", "h4")
    examples.hand_over(view, rows, f"queries of {view.name(label)}", f"class-{label}")

    def wrong(row: int) -> int | None:
        places = np.flatnonzero(~learned.right[row])
        return int(learned.neighbours[row, places[0]]) if len(places) else None

    examples.queries(view, rows, f"class-{label}", wrong)
