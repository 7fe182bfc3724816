"""A run as the pages of Inspection show it: which one, what its last evaluation found, its samples as tiles."""

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
    """A run, its embeddings file, what that holds, and how classes are called.

    over: where images that lie on the others are served.
    """

    run: Run
    source: Path
    test: TestNeighbours
    name: Callable[[int], str]
    over: Callable[[int], str] = lambda index: ""

    @property
    def tag(self) -> str:
        """What changes with the embeddings, for the caches of the pages."""
        return f"{self.source.name} {self.source.stat().st_mtime_ns}"

    def class_of(self, row: int) -> str:
        """The name of the class of a row."""
        return self.name(int(self.test.labels[row]))

    def forces(self, row: int, other: int | None = None) -> str:
        """The query of the link from a query and a neighbour to their forces; "" if its class has no other sample."""
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
        """A sample as a query."""
        index = int(self.test.indices[row])
        return neighbour_grid.Tile(index, self.class_of(row), lines, over=self.over(index), forces=forces)

    def neighbour(self, row: int, right: bool | None, *lines: str, forces: str = "") -> neighbour_grid.Neighbour:
        """A sample as what was found."""
        index = int(self.test.indices[row])
        return neighbour_grid.Neighbour(
            index, self.class_of(row), lines, over=self.over(index), forces=forces, right=right
        )

    def near(self, row: int, k: int, *, forces: bool = True) -> list[neighbour_grid.Neighbour]:
        """Its k nearest with their distances; forces: whether each leads to its own."""
        test = self.test
        test.ask([row])
        nearest = zip(test.neighbours[row, :k], test.distances[row, :k], test.right[row, :k], strict=True)
        return [
            self.neighbour(other, bool(right), f"{distance:.3f}", forces=self.forces(row, other) if forces else "")
            for other, distance, right in nearest
        ]


def picked(what: str, *, into: DeltaGenerator | None = None, width: int = 640) -> ShownRun | None:
    """The run of ?run= with its last evaluation, by a box; None, and a way out, where there is none that can be read.

    what: of it is to be shown, for example "neighbours". into: the container for the box alone.
    """
    return _evaluated(run_picker.pick(RunStore(), into=into, width=width), what)


def headed(what: str, title: str, sentence: str) -> ShownRun | None:
    """`picked`, by the bar in the head of a page that has this title and says this of what to do."""
    return _evaluated(run_picker.head(title, sentence), what)


def _evaluated(run: Run | None, what: str) -> ShownRun | None:
    known = run and evaluated(run, what)
    return ShownRun(run, *known, naming(run)) if run and known else None
