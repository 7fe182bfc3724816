"""Notes on sampled or approximate neighbour searches, and the job that searches all queries."""

from __future__ import annotations

import streamlit as st

from dmlcore.inspection import whole_search
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.inspection.whole_search import WholeCost, WholeSearch
from dmlcore.jobs.launch import JobName
from dmlcore.metrics.approximate import TITLES
from dmlcore.storage.runs import Run
from pages.shared.state.cache import cached
from pages.shared.widgets import job_button
from pages.shared.words.numbers import percent

TASK: JobName = "search-all"


def about(test: TestNeighbours) -> str:
    """Return the prefix of scores and ranks: "≈ " for an approximate search, else ""."""
    return "" if test.approximation is None else "≈ "


def note(run: Run, test: TestNeighbours) -> None:
    """Show which queries the scores cover, their error, and the job that searches all queries; nothing if exact."""
    recall, precision = test.off(test.right[:, 0]), test.off(test.average_precision)
    if recall is not None and precision is not None:
        st.caption(
            f"All these neighbours would take long, so {int(test.queries.sum()):,} queries drawn at random were each "
            f"searched among all {len(test.labels):,} samples, exactly. Scores, failures and orders are theirs: of all "
            f"queries, R@1 is this ± {percent(recall)} and MAP@R this ± {percent(precision)} (19 times of 20). Any "
            "other sample is searched when it is shown."
        )
    elif (known := test.approximation) is not None:
        st.caption(
            f"≈ Nearly the nearest: {known.words}. So R@1 is off by {percent(known.first.off)} at most (19 times of "
            f"20), and the exact MAP@R is this {100 * known.precision:+.1f} ± {100 * known.precision_off:.1f} points. "
            "Distances are exact; ranks, scores, hubs and confusions follow from these lists."
        )
    else:
        return
    _offer(run, test)


def _offer(run: Run, test: TestNeighbours) -> None:
    if job_button.busy(run, TASK):
        return
    job_button.failed(run, TASK)
    if not st.toggle("Search all queries …", key=TASK, help="What that would take here, before it is begun"):
        return
    with st.spinner("Timing a small search …"):
        ways = {cost.kind: cost for cost in _forecast(*_sizes(test))}
    chosen = st.radio(
        "How",
        list(ways),
        index=2,
        format_func=TITLES.__getitem__,
        captions=[_needs(cost) for cost in ways.values()],
        key=f"{TASK} how",
    )
    st.caption(
        "Estimated from 10,000 points searched now, on this machine as busy as it is; off by up to a few times. What "
        "an index misses is measured on the sample and told. The lists are kept until the run is evaluated anew."
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
