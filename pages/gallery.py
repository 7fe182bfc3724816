"""Gallery: what a network takes for similar. Test samples as queries, each with its nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlencode

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dmlcore.inspection.learned import Learned, Unreadable
from dmlcore.inspection.queries import ORDERS, select
from dmlcore.runs import Run, RunStore
from pages._ui import grid, job, run_picker, thumbnails
from pages._ui.learned import learned, naming, outdated
from pages._ui.live import percent

ROWS = 8  # queries on a page
CLICK = "gallery_click"


def page() -> None:
    st.title("Nearest neighbours", anchor=False)
    st.markdown(
        "Each row is a test sample, the query, and the test samples whose embeddings lie nearest to it: "
        ":green[**✓**] of the same class, :orange[**✗**] of another. Click a picture to make it the query."
    )
    run = run_picker.pick(RunStore())
    if run is None:
        return
    source = run.embeddings()
    if source is None:
        st.markdown("This run has not been evaluated yet: its neighbours appear once its test part is embedded.")
        job.offer(run, "evaluate")
        return
    if outdated(run, source):
        st.caption("The run was trained on since; below is its last evaluation.")
        job.offer(run, "evaluate")
    try:
        found = learned(source)
    except Unreadable as error:
        st.error(str(error), icon=":material/broken_image:")
        job.offer(run, "evaluate")
        return
    browse(run, found, naming(run))


@st.fragment
def browse(run: Run, found: Learned, name: Callable[[int], str]) -> None:
    """The summary, then one query in full or the filtered list."""
    failures = int(found.failures.sum())
    st.markdown(
        f"**R@1 {percent(found.recall_at_1)}** · **MAP@R {percent(found.map_at_r)}** · {len(found.labels):,} test "
        f"samples of {len(np.unique(found.labels)):,} classes · {failures:,} failures (nearest neighbour wrong)"
    )
    grid.clicked(CLICK, _follow_click)
    query = st.query_params.get("query")
    if query is not None:
        row = found.row(query)
        if row is not None:
            one(run, found, name, row)
            return
        st.warning(
            "The query of the link is not in the test part of this run; here are all.", icon=":material/link_off:"
        )
    many(run, found, name)


def one(run: Run, found: Learned, name: Callable[[int], str], row: int) -> None:
    """A single query with as many neighbours as are kept."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("All queries", key="all_queries", icon=":material/arrow_back:", on_click=_forget_query)
        index = int(found.indices[row])
        st.page_link(
            "maps.py",
            label="On the map",
            icon=":material/bubble_chart:",
            query_params={"run": run.id, "point": str(index)},
        )
        right = np.flatnonzero(found.right[row])
        first = f"first right neighbour at place {right[0] + 1}" if len(right) else "no right neighbour among these"
        st.markdown(f"Sample {index} · AP@R {percent(found.average_precision[row])} · {first}")
    _show(run, found, name, [row], found.neighbours.shape[1])


def many(run: Run, found: Learned, name: Callable[[int], str]) -> None:
    """The filters, the rows that pass them, one page at a time."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        classes = [None, *np.unique(found.labels).tolist()]
        chosen = st.selectbox(
            "Class of the query",
            classes,
            format_func=lambda c: "all classes" if c is None else name(c),
            key="class",
            help="Only queries of this class; neighbours come from all classes",
            width=240,
        )
        order = st.selectbox(
            "Order",
            list(ORDERS),
            key="order",
            width=160,
            bind="query-params",
            help="Worst: lowest average precision AP@R, the share of right neighbours weighted by rank",
        )
        k = st.slider(
            "Neighbours k", 3, 12, 8, key="k", bind="query-params", width=220, help="Nearest neighbours shown per query"
        )
        failures = st.toggle(
            "Only failures",
            key="failures",
            bind="query-params",
            help="Only queries whose nearest neighbour is of another class",
        )
    rows = select(found, order, label=chosen, failures=failures)
    if not len(rows):
        st.info("No query passes these filters" + (": no failures here." if failures else "."), icon=":material/check:")
        return
    pages = -(-len(rows) // ROWS)
    with st.container(horizontal=True, vertical_alignment="center", key="pages"):
        number = st.pagination(pages, key=f"page {chosen} {order} {failures}")  # other filters begin on page 1
        st.caption(f"{len(rows):,} queries, page {number} of {pages:,}. Under each neighbour: Euclidean distance.")
    _show(run, found, name, rows[(number - 1) * ROWS : number * ROWS], min(k, found.neighbours.shape[1]))


def _show(
    run: Run, found: Learned, name: Callable[[int], str], rows: Sequence[int] | NDArray[np.int64], k: int
) -> None:
    def class_of(row: int) -> str:
        return name(int(found.labels[row]))

    tiles: list[grid.Row] = [
        (
            grid.Tile(int(found.indices[row]), class_of(row), (f"AP@R {percent(found.average_precision[row])}",)),
            [
                grid.Neighbour(int(found.indices[other]), class_of(other), (f"{distance:.3f}",), bool(right))
                for other, distance, right in zip(
                    found.neighbours[row, :k], found.distances[row, :k], found.right[row, :k], strict=True
                )
            ],
        )
        for row in rows
    ]
    st.html(grid.html(tiles, thumbnails.address(run), lambda index: f"?{urlencode({'run': run.id, 'query': index})}"))


def _follow_click() -> None:
    st.query_params["query"] = str(st.session_state[CLICK]["query"])


def _forget_query() -> None:
    st.query_params.pop("query", None)


page()
