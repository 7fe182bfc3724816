"""Run displayed by the Inspection pages: its selection, its last evaluation, and its samples as tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlencode

from streamlit.delta_generator import DeltaGenerator

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.runs import Run, RunStore
from pages.shared.widgets import neighbour_grid, run_picker
from pages.shared.widgets.last_evaluation import evaluated
from pages.shared.widgets.test_neighbours import naming


@dataclass(frozen=True, eq=False)
class ShownRun:
    """Run with its embeddings file, the file's contents, and the names of its classes.

    `over` returns the URL of the overlay of a sample's image, "" for none.
    """

    run: Run
    source: Path
    test: TestNeighbours
    name: Callable[[int], str]
    over: Callable[[int], str] = lambda index: ""

    @property
    def tag(self) -> str:
        """Cache key that changes with the embeddings."""
        return f"{self.source.name} {self.source.stat().st_mtime_ns}"

    def class_of(self, row: int) -> str:
        """Return the name of the class of a row."""
        return self.name(int(self.test.labels[row]))

    def forces(self, row: int, other: int | None = None) -> str:
        """Return the query of a link to the forces between a query and a neighbour; "" if the class has no other
        sample.
        """
        test = self.test
        if test.positives.nearest[row] < 0:
            return ""
        pair = f"{self._query}&query={test.indices[row]}"
        if other is None:
            return pair
        return f"{pair}&{'right' if test.labels[other] == test.labels[row] else 'wrong'}={test.indices[other]}"

    @cached_property
    def _query(self) -> str:
        return urlencode({"run": self.run.id})

    def tile(self, row: int, *lines: str, forces: str = "") -> neighbour_grid.Tile:
        """Return the tile of a sample as a query."""
        index = int(self.test.indices[row])
        return neighbour_grid.Tile(index, self.class_of(row), lines, over=self.over(index), forces=forces)

    def neighbour(self, row: int, right: bool | None, *lines: str, forces: str = "") -> neighbour_grid.Neighbour:
        """Return the tile of a sample as a neighbour; `right` tells if it has the query's class."""
        index = int(self.test.indices[row])
        return neighbour_grid.Neighbour(
            index, self.class_of(row), lines, over=self.over(index), forces=forces, right=right
        )

    def near(self, row: int, k: int, *, forces: bool = True) -> list[neighbour_grid.Neighbour]:
        """Return the tiles of the k nearest neighbours of a row with their distances; `forces` links each to its
        forces.
        """
        test = self.test
        test.search_rows([row])
        nearest = zip(test.neighbours[row, :k], test.distances[row, :k], test.right[row, :k], strict=True)
        return [
            self.neighbour(other, bool(right), f"{distance:.3f}", forces=self.forces(row, other) if forces else "")
            for other, distance, right in nearest
        ]


def picked(what: str, *, into: DeltaGenerator | None = None, width: int = 640) -> ShownRun | None:
    """Show a select box for the run in ?run= and return it with its last evaluation; None if it cannot be read.

    `what` names the content that the page shows, for example "neighbours"; `into` is the container of the select box.
    """
    return _evaluated(run_picker.pick(RunStore(), into=into, width=width), what)


def headed(what: str, title: str, sentence: str) -> ShownRun | None:
    """Show the head of an Inspection page (title, select box, sentence) and return the run as `picked` does."""
    return _evaluated(run_picker.head(title, sentence), what)


def _evaluated(run: Run | None, what: str) -> ShownRun | None:
    known = run and evaluated(run, what)
    return ShownRun(run, *known, naming(run)) if run and known else None
