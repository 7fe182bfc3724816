"""Rows of the neighbour grid, for one run or for several runs on the same queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from dmlcore.storage.runs import Run
from dmlcore.typing import Ints
from pages.shared.server import thumbnails
from pages.shared.widgets import neighbour_grid, sampled, selection
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words.numbers import percent

KEPT = ("with", "selection")  # URL parameters that are preserved in a link to another query
MARKS = "ABC"  # letters that mark the compared runs; at most len(MARKS) runs can be compared


def link(run: Run) -> Callable[[int], str]:
    """Return a function that maps a sample's data set index to the URL of Neighbours with that sample as the query."""
    first, kept = (urlencode(part) for part in ({"run": run.id}, _kept()))
    return lambda index: f"?{first}&query={index}{'&' if kept else ''}{kept}"


def _kept() -> dict[str, str]:
    return {key: st.query_params[key] for key in KEPT if key in st.query_params}


def query(shown: ShownRun, row: int, *lines: str) -> neighbour_grid.Tile:
    """Return the image tile of a query, with extra lines of text and, for a failure, a link to its forces."""
    return shown.tile(row, *lines, forces=shown.forces(row) if shown.test.failures[row] else "")


def one_run(shown: ShownRun, rows: Sequence[int] | Ints, k: int, words: Callable[[int], str]) -> None:
    """Show queries and their k nearest neighbours; `words(row)` is shown below a query, after its AP@R."""
    tiles: list[neighbour_grid.Row] = []
    shown.test.search_rows(list(rows))
    for row in rows:
        lines = [_precision(shown, row), words(row)]
        tiles.append((query(shown, row, *filter(None, lines)), shown.near(row, k)))
    st.html(neighbour_grid.html(tiles, thumbnails.address(shown.run), link(shown.run)))


def _precision(shown: ShownRun, row: int) -> str:
    """Return the AP@R of a query as text; "" without labels."""
    score = percent(shown.test.average_precision[row])
    return f"AP@R {sampled.about(shown.test)}{score}" if shown.test.has_labels else ""


def several_runs(shown: Sequence[ShownRun], rows: Ints, k: int) -> None:
    """Show queries with their k nearest neighbours in several runs; `rows` (runs, n) holds row indices in each run."""
    tiles = []
    for each, asked in zip(shown, rows, strict=True):
        each.test.search_rows(asked)
    for column in rows.T:
        lines = [
            neighbour_grid.RunNeighbours(
                MARKS[number],
                each.run.id,
                (_precision(each, row),),
                each.near(int(row), k),
            )
            for number, (each, row) in enumerate(zip(shown, column, strict=True))
        ]
        # The query tile shows the weight map of the first run and has no link to forces.
        tiles.append((replace(query(shown[0], int(column[0])), forces=""), lines))
    st.html(neighbour_grid.compared(tiles, thumbnails.address(shown[0].run), link(shown[0].run)))


def images(shown: Sequence[ShownRun], rows: Ints, k: int) -> list[int]:
    """Return the data set indices of some queries and of their k nearest neighbours in all runs.

    `rows` (runs, n) holds the indices of the queries in the test samples of each run.
    """
    lists = [each.test.neighbours[part, :k] for each, part in zip(shown, rows, strict=True)]
    shown_indices = [each.test.indices[near[near >= 0]] for each, near in zip(shown, lists, strict=True)]
    indices: list[int] = np.unique(
        np.concatenate([shown[0].test.indices[rows[0]], *map(np.ravel, shown_indices)])
    ).tolist()
    return indices


def select_button(shown: ShownRun, rows: Ints, what: str, origin: str) -> None:
    """Show a button that makes these rows the selection; `what` names them, `origin` describes the selection."""
    indices = shown.test.indices[rows]
    selection.button(shown.run, indices, f"Select these {len(rows):,} {what}", origin, key="select_shown")
