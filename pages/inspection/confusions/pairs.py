"""Confusion matrix ordered so that confused classes form blocks, the most confused class pairs, and example queries."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import streamlit as st

from dmlcore.figures.confusions import CELL, MOST_NAMED, matrix
from dmlcore.inspection import confusions
from dmlcore.inspection.confusions import ClassPairs, Confusions
from dmlcore.typing import Bools
from pages.inspection.confusions import examples
from pages.inspection.confusions.service import R, confused, neighbour_counts
from pages.shared.widgets.chart import chart
from pages.shared.widgets.run_status import literal
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words.numbers import percent

MOST_SHOWN = 200  # the option to show the whole matrix is offered up to this number of classes
ALL = -1  # option of the class box that shows all classes
LISTED = 100  # class pairs listed
# index in COUNTS of the default, which is 8 neighbours or, if fewer are stored, the largest available number
COUNTS_DEFAULT = 3
# row height of the list in pixels, and number of rows visible without scrolling, which leaves room for images below
ROW, IN_SIGHT = 35, 5
PAIR = "pair"  # URL parameter; its value is "QUERY-OTHER", the labels of the query's and the neighbour's class
# The matrix has its full size, so that its class names are visible and the mouse wheel scrolls the page. In a narrow
# window, the matrix scrolls horizontally and the list moves below it. Eight neighbours fit on one line.
STYLE = """<style>
.st-key-matrix-scroll { overflow-x: auto; }
.st-key-matrix-scroll [data-testid="stVegaLiteChart"] { width: max-content; }
/* A hint where the matrix is cut at the right, gone at its end; without overflow the timeline is inactive. */
.st-key-matrix-scroll::before { content: "Scroll sideways for the rest →"; position: sticky; left: 0; z-index: 1;
  width: 100%; flex: none; height: 0; margin-bottom: -1rem; overflow: hidden; text-align: right; font-size: .8rem;
  font-weight: 600; animation: matrix-cut linear both; animation-timeline: scroll(nearest inline); }
@keyframes matrix-cut { from, to { height: 1.4rem; margin-bottom: 0; } to { opacity: 0; } }
@supports not (animation-timeline: scroll()) { @media (max-width: 640px) {
  .st-key-matrix-scroll::before { height: 1.4rem; margin-bottom: 0; animation: none; } } }
.st-key-confused [data-testid="stColumn"] { min-width: min(36rem, 100%); }
.st-key-pair .neighbours .row { gap: 14px; padding: 8px 0; }
.st-key-pair .neighbours figure.query { width: 84px; }
.st-key-pair .neighbours .query .name { display: none; } /* the title says it */
@media (min-width: 640px) {
  .st-key-pair .neighbours .found { grid-template-columns: repeat(8, minmax(0, 1fr)); gap: 8px; }
}
</style>"""
_PAIR = re.compile(r"(\d{1,9})-(\d{1,9})")


def show(view: ShownRun) -> None:
    """Show the confusion matrix next to the list of class pairs and the example queries of the chosen pair."""
    st.html(STYLE)
    with st.container(key="confused"):
        left, right = st.columns(2, gap="small")
    with right, st.container(gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            k = _neighbours(view)
            with st.spinner("Counting neighbours by class …"):
                pair_counts = confused(view.source, R if k == R else int(k))
            around = _around(view, pair_counts)
        best = confusions.pairs(pair_counts, LISTED)
        chosen = _chosen(pair_counts, best)
        _list(view, pair_counts, best, chosen, k)
        if chosen is not None:
            with st.container(key="pair", gap="xsmall"):
                _examples(view, pair_counts, chosen, k)
    with left:
        _matrix(view, pair_counts, around, chosen, k)


def _neighbours(view: ShownRun) -> str:
    counts = neighbour_counts(view)
    k: str = st.select_slider(
        "Neighbours per query",
        [*map(str, counts), R],
        value=str(counts[: COUNTS_DEFAULT + 1][-1]),
        key="neighbours",
        bind="query-params",
        width=300,
        help="The k nearest neighbours are counted. R: as many as the class of the query has other samples",
    )
    return k


def _around(view: ShownRun, confusions: Confusions) -> int | None:
    """Let the user choose which classes the matrix shows.

    Returns:
        The label of the class to centre the matrix on, ALL, or None for the most confused classes. Also None if all
        classes fit, in which case there is no choice.
    """
    classes = len(confusions.classes)
    if classes <= MOST_NAMED:
        return None
    whole = [ALL] if classes <= MOST_SHOWN else []
    words = {None: f"the {MOST_NAMED} most confused", ALL: f"all {classes}, names on hover"}
    label: int | None = st.selectbox(
        "Classes in the matrix",
        [None, *whole, *confusions.classes.tolist()],
        format_func=lambda label: words.get(label) or f"around {view.name(label)}",
        key="around",
        width=300,
        help=f"The {MOST_NAMED} most confused classes, or one class with those most confused with it",
    )
    return label


def _chosen(confusions: Confusions, best: ClassPairs) -> tuple[int, int] | None:
    """Return the labels (query, neighbour) of the pair in the URL; by default the most confused pair."""
    match = _PAIR.fullmatch(st.query_params.get(PAIR, ""))
    if match:
        pair = int(match[1]), int(match[2])
        if None not in (confusions.place(pair[0]), confusions.place(pair[1])):
            return pair
    if PAIR in st.query_params:
        st.warning(
            "This run has no such pair of classes. Showing the most confused pair instead.", icon=":material/link_off:"
        )
    return _directed(confusions, best, 0) if len(best.first) else None


def _directed(confusions: Confusions, best: ClassPairs, number: int) -> tuple[int, int]:
    pair = int(confusions.classes[best.first[number]]), int(confusions.classes[best.second[number]])
    return pair if best.there[number] >= best.back[number] else pair[::-1]


def _matrix(
    view: ShownRun, pair_counts: Confusions, around: int | None, chosen: tuple[int, int] | None, k: str
) -> None:
    place = None if around is None else pair_counts.place(around)
    if place is not None:
        places = confusions.select_around(pair_counts, place, MOST_NAMED)
    else:
        classes = len(pair_counts.classes)
        places = confusions.most_confused(pair_counts, classes if around == ALL else min(classes, MOST_NAMED))
    shares = pair_counts.matrix(places)
    order = confusions.order_classes(shares)
    labels = pair_counts.classes[places[order]]
    names = [view.name(int(x)) for x in labels]
    dark = st.context.theme.type == "dark"
    drawn = matrix(shares[np.ix_(order, order)], labels, names, chosen, dark=dark)
    with st.container(key="matrix-scroll"):
        words = (
            f"Confusion matrix of {len(labels)} classes: share of each class among the neighbours of the "
            "queries of a class"
        )
        chart(_key("matrix"), drawn, words, width="content", on_select=_follow_cell, selection_mode=CELL)
    whom = (
        "the R nearest neighbours" if k == R else "the nearest neighbour" if k == "1" else f"the {k} nearest neighbours"
    )
    st.caption(
        "Green: neighbours of the right class. Orange: confusions. Frame: the pair shown. Click a cell for its queries."
    )
    with st.expander("Method", icon=":material/function:"):
        st.markdown(
            f"A cell is the share of the column's class among {whom} of the queries of the row's class. Colour grows "
            "with the square root of the share, so that small shares stay visible. Green reaches full strength at the "
            "largest confusion. Rows and columns are ordered so that confused classes form blocks. The matrix shows "
            f"{len(labels):,} of {len(pair_counts.classes):,} classes."
        )


def _key(chart: Literal["matrix", "worst-pairs"]) -> str:
    """Return a widget key that changes when the pair was chosen elsewhere, which clears the widget's selection."""
    return f"{chart}-{st.session_state.get(f'{chart}-mounted', 0)}"


def _choose(query: int, other: int, *, by: str) -> None:
    st.query_params[PAIR] = f"{query}-{other}"
    for shown in ("matrix", "worst-pairs"):
        if shown != by:
            st.session_state[f"{shown}-mounted"] = st.session_state.get(f"{shown}-mounted", 0) + 1


def _follow_cell() -> None:
    cells = st.session_state[_key("matrix")]["selection"].get(CELL) or []
    if cells and {"i", "j"} <= set(cells[0]):
        _choose(int(cells[0]["i"]), int(cells[0]["j"]), by="matrix")


def _list_key(k: str) -> str:
    """Return the widget key of the pair list. It depends on `k`, because each `k` orders the pairs differently."""
    return f"{_key('worst-pairs')}-{k}"


def _row_of(chosen: tuple[int, int] | None, confusions: Confusions, best: ClassPairs) -> int | None:
    """Return the row index of the chosen pair in the list, in either order of its classes; None if it is not listed."""
    pairs = zip(confusions.classes[best.first].tolist(), confusions.classes[best.second].tolist(), strict=True)
    return next((row for row, pair in enumerate(pairs) if chosen and set(pair) == set(chosen)), None)


def _list(view: ShownRun, confusions: Confusions, best: ClassPairs, chosen: tuple[int, int] | None, k: str) -> None:
    of_all = f"**{percent(confusions.wrong)}** of the neighbours are of a wrong class."
    if not len(best.first):
        st.markdown(of_all)
        st.info("All neighbours are of the right class: no classes are confused.", icon=":material/check:")
        return
    every = len(best.first) < LISTED
    which = f"{'All' if every else 'The'} {len(best.first)} {'confused' if every else 'most confused'} pairs:"
    st.markdown(f"{of_all} {which}")
    ticked = _row_of(chosen, confusions, best)
    first, second = ([view.name(int(x)) for x in confusions.classes[places]] for places in (best.first, best.second))
    st.dataframe(  # numbers come first because, unlike names, they must not be truncated
        {
            "confused": best.mutual.round(3),
            "→": best.there.round(3),
            "←": best.back.round(3),
            "class": first,
            "and": second,
        },
        key=_list_key(k),
        hide_index=True,
        height=ROW * (1 + min(IN_SIGHT, len(best.first))) + 2,
        on_select=lambda: _follow_row(confusions, best, k),
        selection_mode="single-row",
        selection_default={"selection": {"rows": [] if ticked is None else [ticked]}},
        column_config={
            "confused": st.column_config.ProgressColumn(
                format="percent",
                width=72,
                min_value=0.0,
                max_value=float(best.mutual[0]),
                help="Mean of both directions",
            ),
            "→": st.column_config.NumberColumn(
                "1 → 2", format="percent", width=67, help="Share of class 2 among the neighbours of class 1"
            ),
            "←": st.column_config.NumberColumn(
                "2 → 1", format="percent", width=67, help="Share of class 1 among the neighbours of class 2"
            ),
            "class": st.column_config.TextColumn("class 1", width=196),
            "and": st.column_config.TextColumn("class 2", width=196),
        },
    )


def _follow_row(confusions: Confusions, best: ClassPairs, k: str) -> None:
    rows = st.session_state[_list_key(k)]["selection"]["rows"]
    if rows and rows[0] < len(best.first):
        _choose(*_directed(confusions, best, rows[0]), by="worst-pairs")


def _examples(view: ShownRun, confusions: Confusions, chosen: tuple[int, int], k: str) -> None:
    """Show queries of the first class in `chosen` that retrieve the second class, sorted by the number of such
    neighbours.
    """
    query, other = chosen
    first, second = confusions.place(query), confusions.place(other)
    assert first is not None
    assert second is not None
    share = float(confusions.shares[first, second])
    with st.container(horizontal=True, vertical_alignment="center"):
        _title(view.name(query), view.name(other))
        if first != second:
            st.button(
                "Swap classes",
                key="swap",
                icon=":material/swap_horiz:",
                on_click=lambda: _choose(other, query, by="button"),
            )
    counted = len(view.test.neighbours[0]) if k == R else int(k)
    hits = view.test.labels[view.test.neighbours[:, :counted]] == other
    number = np.where((view.test.labels == query) & view.test.queries, hits.sum(axis=1), -1)
    if first == second:
        rows = np.flatnonzero(number >= 0)
        rows = rows[np.argsort(number[rows], kind="stable")]
        words = "fewest right neighbours first"
    else:
        rows = np.flatnonzero(number > 0)
        rows = rows[np.argsort(-number[rows], kind="stable")]
        words = "most first"
    asked = int(confusions.queries[first])
    st.caption(f"{percent(share)} of the neighbours, in {len(rows):,} of {asked:,} queries ({words}).")
    examples.queries(view, rows, f"pair-{query}-{other}", lambda row: _wrong(view, row, other, hits))
    met = np.unique(view.test.neighbours[rows, :counted][hits[rows]]) if first != second else rows[:0]
    examples.hand_over(
        view,
        np.concatenate([rows, met]),
        f"{view.name(query)} found near {view.name(other)}" if first != second else f"queries of {view.name(query)}",
        f"{query}-{other}",
    )


def _wrong(view: ShownRun, row: int, other: int, hits: Bools) -> int | None:
    """Return the row's nearest neighbour of class `other`; if `other` is its own class, its nearest incorrect
    neighbour.
    """
    wrong = hits[row] if other != view.test.labels[row] else ~view.test.right[row]
    places = np.flatnonzero(wrong)
    return int(view.test.neighbours[row, places[0]]) if len(places) else None


def _title(query: str, other: str) -> None:
    """Show a heading with the names of both classes, escaping Markdown in the names."""
    literal(f"Queries of “{query}”" + (f" with neighbours of “{other}”" if other != query else ""), "h4")
