"""Rows of the gallery's grid, of one run or of several on the same queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.runs import Run
from dmlcore.typing import Ints
from pages.shared.server import thumbnails
from pages.shared.widgets import neighbour_grid, selection
from pages.shared.words.numbers import percent

KEPT = ("with", "selection")  # of the link, when a tile becomes the query
MARKS = "ABC"  # of runs side by side


@dataclass(frozen=True, eq=False)
class ShownRun:
    """A run on this page: what it learned, how classes are called, where images to lie on the others are served."""

    run: Run
    test: TestNeighbours
    name: Callable[[int], str]
    over: Callable[[int], str] = lambda index: ""

    @property
    def tag(self) -> str:
        """What changes with the embeddings, for the caches of the pages."""
        path = self.run.embeddings()
        return f"{path.name} {path.stat().st_mtime_ns}" if path else ""

    def class_of(self, row: int) -> str:
        """The name of the class of a row."""
        return self.name(int(self.test.labels[row]))


def link(run: Run) -> Callable[[int], str]:
    """The address of the gallery with a sample as the query."""
    kept = {key: st.query_params[key] for key in KEPT if key in st.query_params}
    return lambda index: f"?{urlencode({'run': run.id, 'query': index} | kept)}"


def forces(shown: ShownRun, row: int, other: int | None = None) -> str:
    """The query of the link from a failure to its forces; empty where the class has no other sample."""
    searched = shown.test
    if searched.positives.nearest[row] < 0:
        return ""
    triplet = {"run": shown.run.id, "query": int(searched.indices[row])}
    if other is not None:
        triplet["right" if searched.labels[other] == searched.labels[row] else "wrong"] = int(searched.indices[other])
    return urlencode(triplet)


def query(shown: ShownRun, row: int, *lines: str) -> neighbour_grid.Tile:
    """The tile of a query, with a link to its forces if it is a failure."""
    index = int(shown.test.indices[row])
    address = forces(shown, row) if shown.test.failures[row] else ""
    return neighbour_grid.Tile(index, shown.class_of(row), lines, over=shown.over(index), forces=address)


def neighbours(shown: ShownRun, row: int, k: int) -> list[neighbour_grid.Neighbour]:
    """The tiles of its k nearest, with their distances."""
    searched = shown.test
    return [
        neighbour_grid.Neighbour(
            index := int(searched.indices[other]),
            shown.class_of(other),
            (f"{distance:.3f}",),
            over=shown.over(index),
            forces=forces(shown, row, int(other)),
            right=bool(right),
        )
        for other, distance, right in zip(
            searched.neighbours[row, :k], searched.distances[row, :k], searched.right[row, :k], strict=True
        )
    ]


def one_run(shown: ShownRun, rows: Sequence[int] | Ints, k: int, words: Callable[[int], str]) -> None:
    """Queries and their neighbours; words(row) stands under a query beside its AP@R."""
    tiles: list[neighbour_grid.Row] = []
    for row in rows:
        lines = [f"AP@R {percent(shown.test.average_precision[row])}", words(row)]
        tiles.append((query(shown, row, *filter(None, lines)), neighbours(shown, row, k)))
    st.html(neighbour_grid.html(tiles, thumbnails.address(shown.run), link(shown.run)))


def several_runs(shown: Sequence[ShownRun], rows: Ints, k: int) -> None:
    """The same queries in several runs; rows (runs, n)."""
    tiles = []
    for column in rows.T:
        lines = [
            neighbour_grid.RunNeighbours(
                MARKS[number],
                each.run.id,
                (f"AP@R {percent(each.test.average_precision[row])}",),
                neighbours(each, int(row), k),
            )
            for number, (each, row) in enumerate(zip(shown, column, strict=True))
        ]
        # Its weight map and its forces are those of the first run.
        tiles.append((replace(query(shown[0], int(column[0])), forces=""), lines))
    st.html(neighbour_grid.compared(tiles, thumbnails.address(shown[0].run), link(shown[0].run)))


def images(shown: Sequence[ShownRun], rows: Ints, k: int) -> list[int]:
    """The indices of all images of these rows (runs, n) and of their k nearest."""
    shown_indices = [each.test.indices[each.test.neighbours[part, :k]] for each, part in zip(shown, rows, strict=True)]
    indices: list[int] = np.unique(
        np.concatenate([shown[0].test.indices[rows[0]], *map(np.ravel, shown_indices)])
    ).tolist()
    return indices


def select_button(shown: ShownRun, rows: Ints, what: str, origin: str) -> None:
    """A button that makes these rows the selection, which map and tables then show."""
    st.button(
        f"Select these {len(rows):,} {what}",
        key="select_shown",
        icon=":material/select_all:",
        help="The map then shows where they lie",
        on_click=_select,
        args=(shown, rows, origin),
    )


def _select(shown: ShownRun, rows: Ints, origin: str) -> None:
    selection.choose(shown.run, shown.test.indices[rows], origin)
