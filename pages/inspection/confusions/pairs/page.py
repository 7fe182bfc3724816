"""The matrix of confusions in an order that shows blocks, the most confused pairs, and examples of a chosen pair."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import streamlit as st

from dmlcore.figures.confusions import CELL, matrix
from dmlcore.inspection import confusions
from dmlcore.inspection.confusions import ClassPairs, Confusions
from dmlcore.typing import Bools
from pages.inspection.confusions.examples import page as examples
from pages.inspection.confusions.service import R, confused, neighbour_counts
from pages.shared.widgets.chart import chart
from pages.shared.widgets.run_status import literal
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words.numbers import percent

MOST_SHOWN = 200  # classes of the whole matrix; of more, those of the worst pairs
WORST = 60  # as many of them
LISTED = 100  # pairs
COUNTS_DEFAULT = 3  # the fourth count: 8 neighbours where so many are kept
PAIR = "pair"  # of the link: label of the query's class - label of the neighbour's
INK = {"light": "#333", "dark": "#ddd"}  # of numbers on pale cells
# The matrix scrolls by itself, its table keeps room for its numbers and goes below where there is none beside.
STYLE = """<style>
.st-key-matrix-scroll { overflow: auto; max-height: 44rem; }
.st-key-matrix-scroll [data-testid="stVegaLiteChart"] { width: max-content; }
.st-key-confused [data-testid="stColumn"] { min-width: min(27rem, 100%); }
</style>"""
_PAIR = re.compile(r"(\d{1,9})-(\d{1,9})")


def show(view: ShownRun) -> None:
    """Matrix, list and examples."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        k = st.select_slider(
            "Neighbours counted of each query",
            [*map(str, neighbour_counts(view)), R],
            value=str(neighbour_counts(view)[: COUNTS_DEFAULT + 1][-1]),
            key="neighbours",
            bind="query-params",
            width=320,
            help="The k nearest; R: as many as the class of the query has other samples, so that all could be right",
        )
        with st.spinner("Counting neighbours by class …"):
            pair_counts = confused(view.source, R if k == R else int(k))
        around = _around(view, pair_counts)
    best = confusions.pairs(pair_counts, LISTED)
    chosen = _chosen(pair_counts, best)
    st.html(STYLE)
    with st.container(key="confused"):
        left, right = st.columns([3, 2], gap="medium")
    with left:
        _matrix(view, pair_counts, around, chosen, k)
    with right:
        _list(view, pair_counts, best, chosen)
    if chosen is not None:
        _examples(view, pair_counts, chosen, k)


def _around(view: ShownRun, confusions: Confusions) -> int | None:
    """The class that the matrix is about, where it cannot show all."""
    if len(confusions.classes) <= MOST_SHOWN:
        return None
    label: int | None = st.selectbox(
        "Around the class",
        [None, *confusions.classes.tolist()],
        format_func=lambda label: "the most confused ones" if label is None else view.name(label),
        key="around",
        width=300,
        help="The matrix shows this class and those that are most confused with it",
    )
    return label


def _chosen(confusions: Confusions, best: ClassPairs) -> tuple[int, int] | None:
    """Labels of the pair of the link; without one those of the most confused pair, the stronger way."""
    match = _PAIR.fullmatch(st.query_params.get(PAIR, ""))
    if match:
        pair = int(match[1]), int(match[2])
        if None not in (confusions.place(pair[0]), confusions.place(pair[1])):
            return pair
    if PAIR in st.query_params:
        st.warning("The pair of the link is none of this run; another is shown.", icon=":material/link_off:")
    return _directed(confusions, best, 0) if len(best.first) else None


def _directed(confusions: Confusions, best: ClassPairs, number: int) -> tuple[int, int]:
    pair = int(confusions.classes[best.first[number]]), int(confusions.classes[best.second[number]])
    return pair if best.there[number] >= best.back[number] else pair[::-1]


def _matrix(
    view: ShownRun, pair_counts: Confusions, around: int | None, chosen: tuple[int, int] | None, k: str
) -> None:
    if around is not None and (place := pair_counts.place(around)) is not None:
        places = confusions.around(pair_counts, place, WORST)
    else:
        places = confusions.prominent(
            pair_counts, len(pair_counts.classes) if len(pair_counts.classes) <= MOST_SHOWN else WORST
        )
    shares = pair_counts.matrix(places)
    order = confusions.ordered(shares)
    labels = pair_counts.classes[places[order]]
    names = [view.name(int(x)) for x in labels]
    ink = INK["dark" if st.context.theme.type == "dark" else "light"]
    drawn = matrix(shares[np.ix_(order, order)], labels, names, chosen, ink=ink)
    with st.container(key="matrix-scroll"):
        words = f"Matrix of {len(labels)} classes: of which class the neighbours of the queries of each class are"
        chart(_key("matrix"), drawn, words, width="content", on_select=_follow_cell, selection_mode=CELL)
    whom = (
        "the R nearest neighbours" if k == R else "the nearest neighbour" if k == "1" else f"the {k} nearest neighbours"
    )
    left_out = (
        "" if len(labels) == len(pair_counts.classes) else f" {len(labels)} of {len(pair_counts.classes):,} classes."
    )
    st.caption(
        f"Row: class of the query; column: class of its neighbours; opacity: share of {whom}, on a root scale. Green "
        f"is "
        f"the own class, which saturates.{left_out} In the order of a clustering by confusion, so that classes which "
        "are mixed up stand in blocks. Click a cell to see its queries."
    )


def _key(chart: Literal["matrix", "worst-pairs"]) -> str:
    """A key that changes once the pair was chosen elsewhere: what was chosen here before can be chosen again."""
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


def _list(view: ShownRun, confusions: Confusions, best: ClassPairs, chosen: tuple[int, int] | None) -> None:
    st.markdown(f"**{percent(confusions.wrong)}** of the neighbours counted are of a wrong class.")
    if not len(best.first):
        st.info("No neighbour is of a wrong class: nothing is confused here.", icon=":material/check:")
        return
    st.dataframe(  # the numbers first: names may be cut, they may not
        {
            "confused": best.mutual.round(3),
            "→": best.there.round(3),
            "←": best.back.round(3),
            "class": [view.name(int(x)) for x in confusions.classes[best.first]],
            "and": [view.name(int(x)) for x in confusions.classes[best.second]],
        },
        key=_key("worst-pairs"),
        hide_index=True,
        height=420,
        on_select=lambda: _follow_row(confusions, best),
        selection_mode="single-row",
        column_config={
            "confused": st.column_config.ProgressColumn(
                format="percent", width=100, min_value=0.0, max_value=float(best.mutual[0]), help="Mean of both ways"
            ),
            "→": st.column_config.NumberColumn(
                format="percent", width=64, help="Of the neighbours of the first class, those of the second"
            ),
            "←": st.column_config.NumberColumn(
                format="percent", width=64, help="Of the neighbours of the second class, those of the first"
            ),
        },
    )
    st.caption(
        f"The {len(best.first)} most confused pairs. Choose a row to see it."
        if len(best.first) == LISTED
        else f"All {len(best.first)} pairs that are confused at all. Choose a row to see it."
    )


def _follow_row(confusions: Confusions, best: ClassPairs) -> None:
    rows = st.session_state[_key("worst-pairs")]["selection"]["rows"]
    if rows and rows[0] < len(best.first):
        _choose(*_directed(confusions, best, rows[0]), by="worst-pairs")


def _examples(view: ShownRun, confusions: Confusions, chosen: tuple[int, int], k: str) -> None:
    """Queries of the one class that have neighbours of the other, most of them first."""
    query, other = chosen
    first, second = confusions.place(query), confusions.place(other)
    assert first is not None
    assert second is not None
    share = (
        float(confusions.matrix([first, second])[0, 1]) if first != second else float(confusions.matrix([first])[0, 0])
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        _title(view.name(query), view.name(other))
        if first != second:
            st.button(
                "The other way",
                key="swap",
                icon=":material/swap_horiz:",
                on_click=lambda: _choose(other, query, by="button"),
            )
    counted = len(view.test.neighbours[0]) if k == R else int(k)
    hits = view.test.labels[view.test.neighbours[:, :counted]] == other
    number = np.where((view.test.labels == query) & ~view.test.is_gallery, hits.sum(axis=1), -1)
    if first == second:
        rows = np.flatnonzero(number >= 0)
        rows = rows[np.argsort(number[rows], kind="stable")]
        words = "those with the fewest right neighbours first"
    else:
        rows = np.flatnonzero(number > 0)
        rows = rows[np.argsort(-number[rows], kind="stable")]
        words = "those with the most such neighbours first"
    asked = int(confusions.queries[first])
    st.caption(
        f"{percent(share)} of the neighbours counted. {len(rows):,} of {asked:,} queries of this class"
        f"{'' if first == second else f' have such a neighbour among their {counted} nearest'}, {words}."
    )
    met = np.unique(view.test.neighbours[rows, :counted][hits[rows]]) if first != second else rows[:0]
    examples.hand_over(
        view,
        np.concatenate([rows, met]),
        f"{view.name(query)} found near {view.name(other)}" if first != second else f"queries of {view.name(query)}",
        f"{query}-{other}",
    )
    examples.queries(view, rows, f"pair-{query}-{other}", lambda row: _wrong(view, row, other, hits))


def _wrong(view: ShownRun, row: int, other: int, hits: Bools) -> int | None:
    """The nearest neighbour of the other class; of the own class asked for, the nearest of any other."""
    wrong = hits[row] if other != view.test.labels[row] else ~view.test.right[row]
    places = np.flatnonzero(wrong)
    return int(view.test.neighbours[row, places[0]]) if len(places) else None


def _title(query: str, other: str) -> None:
    """The pair, literally."""
    literal(f"Queries of “{query}”" + (f" with neighbours of “{other}”" if other != query else ""), "h4")
