"""Queries with their neighbours under a chart, each with its ways on; and samples handed over as a selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl, urlencode

import numpy as np
import streamlit as st

from dmlcore.typing import Ints
from pages.inspection.confusions.service import ConfusionsView
from pages.shared.server import thumbnails
from pages.shared.widgets import menu, neighbour_grid, selection
from pages.shared.words.numbers import percent

ROWS = 4  # queries at a time
SHOWN = 8  # neighbours of each


def queries(view: ConfusionsView, rows: Ints, key: str, wrong: Callable[[int], int | None]) -> None:
    """The queries `rows`, some at a time, with their neighbours; wrong(row): the neighbour that the forces are of."""
    if not len(rows):
        st.info("No query is like that.", icon=":material/check:")
        return
    number = 1
    if len(rows) > ROWS:
        with st.container(horizontal=True, vertical_alignment="center", key=f"pages-{key}"):
            number = st.pagination(-(-len(rows) // ROWS), key=f"page-{key}", max_visible_pages=5)
            st.caption(f"{len(rows):,} queries, {ROWS} at a time. Under each neighbour: Euclidean distance.")
    shown = [_query(view, row, wrong(row)) for row in rows[(number - 1) * ROWS : number * ROWS].tolist()]
    st.html(neighbour_grid.html(shown, thumbnails.address(view.run), lambda index: _link(view, index)))
    _listen(view, key)


def tiles(view: ConfusionsView, rows: Sequence[tuple[int, str, Sequence[int]]], key: str) -> None:
    """Rows of images that are no search: (sample, words under it, the samples beside it), all as rows."""
    learned = view.test
    shown: list[neighbour_grid.Row] = [
        (
            neighbour_grid.Tile(int(learned.indices[row]), _class(view, row), (words,) if words else ()),
            [
                neighbour_grid.Neighbour(
                    int(learned.indices[other]),
                    _class(view, other),
                    right=bool(learned.labels[other] == learned.labels[row]),
                )
                for other in others
            ],
        )
        for row, words, others in rows
    ]
    st.html(neighbour_grid.html(shown, thumbnails.address(view.run), lambda index: _link(view, index)))
    _listen(view, key)


def hand_over(view: ConfusionsView, rows: Ints, origin: str, key: str) -> None:
    """A button that makes samples the selection, and once they are it, the pages that show it."""
    indices = np.unique(view.test.indices[rows])
    chosen = selection.chosen(view.run)
    if chosen is not None and np.array_equal(chosen.indices, indices):
        selection.bar(view.run, chosen, here="confusions")
        return
    st.button(
        f"Select these {len(indices):,} samples" if len(indices) > 1 else "Select this sample",
        key=f"select-{key}",
        icon=":material/select_all:",
        disabled=not len(indices),
        help="For the map and the gallery",
        on_click=_choose,
        args=(view, indices, origin),
    )


def _choose(view: ConfusionsView, indices: Ints, origin: str) -> None:
    selection.choose(view.run, indices, origin)


def _query(view: ConfusionsView, row: int, wrong: int | None) -> neighbour_grid.Row:
    learned = view.test
    k = min(SHOWN, learned.neighbours.shape[1])
    neighbours = [
        neighbour_grid.Neighbour(
            int(learned.indices[other]),
            _class(view, other),
            (f"{distance:.3f}",),
            right=bool(right),
            forces="" if right else _forces(view, row, other),
        )
        for other, distance, right in zip(
            learned.neighbours[row, :k].tolist(), learned.distances[row, :k], learned.right[row, :k], strict=True
        )
    ]
    precision = f"AP@R {percent(learned.average_precision[row])}"
    forces = "" if wrong is None else _forces(view, row, wrong)
    return neighbour_grid.Tile(int(learned.indices[row]), _class(view, row), (precision,), forces=forces), neighbours


def _forces(view: ConfusionsView, row: int, wrong: int) -> str:
    """The link from a query and a wrong neighbour to their forces; none where the class has no other sample."""
    if np.isnan(view.test.average_precision[row]):
        return ""
    indices = view.test.indices
    return urlencode({"run": view.run.id, "query": int(indices[row]), "wrong": int(indices[wrong])})


def _listen(view: ConfusionsView, key: str) -> None:
    """A click on an image makes it the query of the gallery; one on Forces shows what losses do about it."""
    asked = neighbour_grid.listen(f"click-{key}", keys=("forces",))
    if isinstance(asked["query"], int):
        menu.go("gallery", {"run": view.run.id, "query": str(asked["query"])})
    if isinstance(asked["forces"], str):
        menu.go("failure", dict(parse_qsl(asked["forces"][:500])))


def _link(view: ConfusionsView, index: int) -> str:
    return f"gallery?{urlencode({'run': view.run.id, 'query': index})}"


def _class(view: ConfusionsView, row: int) -> str:
    return view.name(int(view.test.labels[row]))
