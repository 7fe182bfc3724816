"""Rows of example queries and their neighbours, shown below the charts, and a button that selects the samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl, urlencode

import numpy as np
import streamlit as st

from dmlcore.typing import Ints
from pages.shared.server import thumbnails
from pages.shared.widgets import menu, neighbour_grid, selection
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words.numbers import percent

ROWS = 3  # queries on a page
SHOWN = 8  # neighbours of each query


def queries(view: ShownRun, rows: Ints, key: str, wrong: Callable[[int], int | None]) -> None:
    """Show queries with their neighbours, one page at a time.

    Args:
        rows: Row indices of the queries.
        wrong: Maps a query's row to the negative for its link to the Failures page, or to None for no link.
    """
    if not len(rows):
        st.info("No query matches.", icon=":material/check:")
        return
    images = st.empty()
    page = page_of(len(rows), ROWS, key, "queries", " Under each neighbour: Euclidean distance.")
    shown = [_query(view, row, wrong(row)) for row in rows[page].tolist()]
    images.html(neighbour_grid.html(shown, thumbnails.address(view.run), lambda index: _link(view, index)))
    _listen(view, key)


def page_of(count: int, each: int, key: str, what: str, more: str = "") -> slice:
    """Show page numbers if there are more than `each` items; return the positions of the items on the chosen page."""
    number = 1
    if count > each:
        with st.container(horizontal=True, vertical_alignment="center", key=f"pages-{key}"):
            number = st.pagination(-(-count // each), key=f"page-{key}", max_visible_pages=5)
            st.caption(f"{count:,} {what}, {each} at a time.{more}")
    return slice((number - 1) * each, number * each)


def tiles(view: ShownRun, rows: Sequence[tuple[int, str, Sequence[int]]], key: str) -> None:
    """Show rows of images that are not search results.

    Args:
        rows: (sample, caption, samples to show next to it) for each row; samples are row indices of the embeddings.
    """
    labels = view.test.labels
    shown: list[neighbour_grid.Row] = [
        (
            view.tile(row, *([words] if words else [])),
            [view.neighbour(other, bool(labels[other] == labels[row])) for other in others],
        )
        for row, words, others in rows
    ]
    st.html(neighbour_grid.html(shown, thumbnails.address(view.run), lambda index: _link(view, index)))
    _listen(view, key)


def hand_over(view: ShownRun, rows: Ints, origin: str, key: str) -> None:
    """Show a button that selects the samples `rows`; if they are selected already, show the selection bar instead."""
    indices = np.unique(view.test.indices[rows])
    chosen = selection.chosen(view.run)
    if chosen is not None and np.array_equal(chosen.indices, indices):
        selection.bar(view.run, chosen, here="confusions")
        return
    label = f"Select these {len(indices):,} samples" if len(indices) > 1 else "Select this sample"
    selection.button(view.run, indices, label, origin, key=f"select-{key}")


def _query(view: ShownRun, row: int, wrong: int | None) -> neighbour_grid.Row:
    precision = f"AP@R {percent(view.test.average_precision[row])}"
    forces = "" if wrong is None else view.forces(row, wrong)
    return view.tile(row, precision, forces=forces), view.near(row, min(SHOWN, view.test.neighbours.shape[1]))


def _listen(view: ShownRun, key: str) -> None:
    """Handle a click on an image: open the image as a query on Neighbours, or on Failures if "Forces" was clicked."""
    asked = neighbour_grid.listen(f"click-{key}", keys=("forces",))
    if isinstance(asked["query"], int):
        menu.go("neighbours", selection.address(view.run) | {"query": str(asked["query"])})
    if isinstance(asked["forces"], str):
        menu.go("failures", selection.address(view.run) | dict(parse_qsl(asked["forces"][:500])))


def _link(view: ShownRun, index: int) -> str:
    return f"neighbours?{urlencode(selection.address(view.run) | {'query': str(index)})}"
