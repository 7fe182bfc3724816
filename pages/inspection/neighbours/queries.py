"""Query views of the Neighbours page: a filtered and sorted list, shown page by page, or a single query in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from dmlcore.inspection.comparison import Comparison
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.inspection.queries import ORDERS, Order, select
from dmlcore.inspection.selections import Selection
from dmlcore.typing import Ints
from pages.inspection.neighbours import rows as rows_view
from pages.inspection.neighbours import runs_beside as runs_beside_view
from pages.shared.widgets import menu, sampled
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words.numbers import percent

ROWS = 10  # queries per page; half as many if several runs are compared
# session-state key of the list: filters, page number, page count, and number of page turns by keyboard
PAGE = "gallery page"


def one(shown: Sequence[ShownRun], row: int, back: str = "All queries") -> None:
    """Show one query with all stored neighbours; `back` is the label of the button that returns to the list."""
    first, searched = shown[0], shown[0].test
    searched.search_rows([row])
    index = int(searched.indices[row])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(back, key="all_queries", icon=":material/arrow_back:", on_click=forget_query)
        menu.link("explore", "On the map", {"run": first.run.id, "point": str(index)})
        if searched.positives.nearest[row] >= 0 and not searched.is_gallery[row]:
            menu.link(
                "failures",
                "Forces of this failure" if searched.failures[row] else "Forces on this query",
                {"run": first.run.id, "query": str(index)},
            )
        score = f"{sampled.about(searched)}{percent(searched.average_precision[row])}"
        scored = f" · AP@R {score} · {_first_right(searched, row)}" if searched.has_labels else ""
        st.markdown(f"Sample {index}{scored}")
    if len(shown) > 1:
        rows = [each.test.row(str(index)) for each in shown]
        rows_view.several_runs(shown, np.array(rows)[:, None], searched.neighbours.shape[1])
    else:
        rows_view.one_run(first, [row], searched.neighbours.shape[1], lambda _: "")


def many(
    shown: Sequence[ShownRun], together: Comparison | None, selected: Selection | None, label: int | None
) -> tuple[int, list[int]]:
    """Show the filters and, page by page, the queries that pass them.

    Returns:
        The data set index of the first query shown (-1 if none), and the indices of all images on the next page.
    """
    searched, run = shown[0].test, shown[0].run
    order: Order = "by index"
    failures = False
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if searched.has_labels:  # without labels, no order depends on them
            order = st.selectbox(
                "Order",
                list(ORDERS),
                key="order",
                width=190,
                bind="query-params",
                help="\n\n".join(f"**{name}**: {words}" for name, words in ORDERS.items()),
            )
        k = st.slider(
            "Neighbours k",
            3,
            12,
            8,
            key="k",
            bind="query-params",
            width=200,
            help="Number of neighbours shown per query",
        )
        if searched.has_labels:
            failures = st.toggle(
                "Only failures",
                key="failures",
                bind="query-params",
                help="Show only queries whose nearest neighbour is of another class",
            )
    indices = None if selected is None else selected.indices
    rows = select(searched, order, label=label, failures=failures, indices=indices)
    contest = runs_beside_view.EVERY
    if together is not None:
        contests = runs_beside_view.contests(len(shown))
        if searched.has_labels:  # else no run is right
            contest = st.pills(
                "Show",
                list(contests),
                default=contest,
                required=True,
                key=f"contest of {len(shown)}",
                label_visibility="collapsed",
            )
        columns = _columns(together, contests[contest], rows)
        rows = together.rows[0, columns]
    if not len(rows):
        addition = "selected query" if selected is not None else "failed query" if failures else "query"
        st.info(f"No {addition} passes these filters.", icon=":material/check:")
        return -1, []
    asked = f"{run.id} {label} {order} {failures} {contest} {selected.id if selected else ''}"
    each = ROWS if together is None else ROWS // 2
    number = page_of(asked, len(rows), each)
    part, then = slice((number - 1) * each, number * each), slice(number * each, (number + 1) * each)
    k = min(k, searched.neighbours.shape[1])
    if together is None:
        rows_view.one_run(shown[0], rows[part], k, _words(searched, order))
        ahead = rows_view.images(shown, rows[None, then], k)
    else:
        rows_view.several_runs(shown, together.rows[:, columns[part]], k)
        ahead = rows_view.images(shown, together.rows[:, columns[then]], k)
    _hand_on(shown[0], rows, selected, f"gallery: {order}" + (f", {contest}" if together else ""))
    return int(searched.indices[rows[part][0]]), ahead


def turn(step: int) -> None:
    """Move `step` pages forward (back if negative) after a keyboard shortcut."""
    if at := st.session_state.get(PAGE):
        at |= {"number": min(max(at["number"] + step, 1), at["last"]), "turned": at["turned"] + 1}


def forget_query() -> None:
    """Return to the list by removing the query from the URL."""
    st.query_params.pop("query", None)


def page_of(asked: str, count: int, each: int, what: str = "queries") -> int:
    """Show the page numbers and return the current one, from 1. It returns to 1 if the filters in `asked` change."""
    pages = -(-count // each)
    at = st.session_state.get(PAGE)
    if at is None or at["asked"] != asked:
        at = {"asked": asked, "number": 1, "turned": 0}
    with st.container(horizontal=True, vertical_alignment="center", key="pages"):
        # Turning the page by keyboard creates a new widget, because a widget with a default must not be set through its
        # state.
        key, default = f"page {asked} {at['turned']}", min(at["number"], pages)
        number: int = st.pagination(pages, default=default, key=key)
        under = "" if what == "pairs" else " The number under a neighbour is its Euclidean distance."
        st.caption(f"{count:,} {what}, page {number:,} of {pages:,}.{under}")
    st.session_state[PAGE] = at | {"number": number, "last": pages}
    return number


def _columns(together: Comparison, pair: tuple[int, int] | None, rows: Ints) -> Ints:
    """Return the columns of the comparison that belong to the queries in `rows`.

    If `pair` is given, only queries for which its first run beats its second run are included.
    """
    if pair is not None:
        return runs_beside_view.contested(together, pair, rows)
    place = np.full(len(together.learned[0].labels), -1)
    place[together.rows[0]] = np.arange(together.rows.shape[1])
    columns = place[rows]
    return columns[columns >= 0]


def _words(searched: TestNeighbours, order: Order) -> Callable[[int], str]:
    """Return a function that maps a row to the value by which the list is sorted, as text.

    The function returns "" if the list is sorted by AP@R, which is shown in any case.
    """
    p = searched.positives
    if order == "late matches first":
        return lambda row: f"first right: {searched.place(row)}" if p.rank[row] else "only sample of its class"
    if order == "far matches first":
        return lambda row: f"nearest right: {p.nearest_distance[row]:.3f}"
    if order == "far positives first":
        return lambda row: f"farthest right: {p.farthest_distance[row]:.3f}"
    if order == "failures first":
        return lambda row: f"nearest right: {p.nearest_distance[row]:.3f}" if searched.failures[row] else ""
    return lambda _: ""


def _first_right(searched: TestNeighbours, row: int) -> str:
    if not searched.positives.rank[row]:
        return "only sample of its class"
    return f"first right neighbour at {searched.place(row)}, distance {searched.positives.nearest_distance[row]:.3f}"


def _hand_on(shown: ShownRun, rows: Ints, selected: Selection | None, origin: str) -> None:
    """Show a button that selects the queries that pass the filters, unless these are selected already."""
    if len(rows) == len(shown.test.labels) or (selected is not None and len(rows) == len(selected.indices)):
        return
    rows_view.select_button(shown, rows, "queries", origin)
