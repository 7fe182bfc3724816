"""Notes on neighbour searches that are approximate or cover only some queries, and a button for a complete search."""

from __future__ import annotations

import streamlit as st

from dmlcore.inspection import whole_search
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.inspection.whole_search import WholeCost, WholeSearch
from dmlcore.jobs.launch import JobName
from dmlcore.metrics.approximate import TITLES
from dmlcore.significance.noise import spread
from dmlcore.storage.runs import Run
from pages.shared.state.cache import cached
from pages.shared.widgets import job_button
from pages.shared.words.numbers import percent

TASK: JobName = "search-all"


def about(test: TestNeighbours) -> str:
    """Return the prefix for scores and ranks: "≈ " if the neighbour search is approximate, else ""."""
    return "" if test.approximation is None else "≈ "


def note(run: Run, test: TestNeighbours) -> None:
    """State which queries the scores cover and how accurate they are, and offer a search for all queries.

    Shows nothing if all queries were searched exactly.
    """
    recall, precision = test.interval(test.right[:, 0]), test.interval(test.average_precision)
    if recall is not None and precision is not None:
        st.caption(
            f"A search of all queries would take long, so {int(test.queries.sum()):,} random queries were searched "
            f"exactly among all {len(test.labels):,} samples. Scores, failures and rankings use these queries. The "
            f"error of R@1 is ± {percent(recall)}, that of MAP@R ± {percent(precision)} (95 % confidence). Other "
            "samples are searched when you open them."
        )
    elif (known := test.approximation) is not None:
        shift = spread(known.precision, None, sign=True)
        st.caption(
            f"≈ Approximate neighbours: {known.words}. R@1 is off by at most {percent(known.first.off)} (95 % "
            f"confidence), and the exact MAP@R is this {shift} ± {100 * known.precision_off:.1f} points. "
            "Distances are exact; ranks, scores, hubs and confusions are computed from these lists."
        )
    else:
        return
    _offer(run, test)


def _offer(run: Run, test: TestNeighbours) -> None:
    if job_button.busy(run, TASK):
        return
    job_button.failed(run, TASK)
    if not st.toggle("Search all queries …", key=TASK, help="Shows the estimated time and memory before you start"):
        return
    with st.spinner("Timing a small search …"):
        ways = {cost.kind: cost for cost in _forecast(*_sizes(test))}
    chosen = st.radio(
        "Method",
        list(ways),
        index=2,
        format_func=TITLES.__getitem__,
        captions=[_needs(cost) for cost in ways.values()],
        key=f"{TASK} how",
    )
    st.caption(
        "Estimated by searching 10,000 points on this machine at its current load; the true cost may be a few times "
        "higher or lower. Errors of an index are measured on the sample and shown. Results are kept until the next "
        "evaluation."
    )
    st.button(
        "Search all",
        key=f"{TASK} begin",
        type="primary",
        icon=":material/play_arrow:",
        on_click=job_button.begin,
        args=(run, TASK, WholeSearch(chosen).to_json()),
    )


def _needs(cost: WholeCost) -> str:
    minutes = cost.seconds / 60
    if minutes < 2:
        time = f"{cost.seconds:.0f} s"
    else:
        time = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
    exact = "; exact" if cost.kind == "exact" else ""
    return f"about {time}, {cost.bytes / 1e9:.2g} GB of memory{exact}"


def _sizes(test: TestNeighbours) -> tuple[int, int, int]:
    searched = int(test.is_gallery.sum()) or len(test.labels)
    return int((~test.is_gallery).sum()), searched, test.embeddings.shape[1]


@cached(8)
def _forecast(queries: int, searched: int, dimensions: int) -> list[WholeCost]:
    return whole_search.forecast(queries, searched, dimensions)
