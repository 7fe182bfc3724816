"""Run displayed by an Inspection page, with its last evaluation, its class names, and tiles for its samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run
from dmlcore.typing import Ints
from pages.shared.widgets import job_button, neighbour_grid, run_picker
from pages.shared.widgets.test_neighbours import learned, naming, outdated, refuse_other_data
from pages.shared.words import sentences as words


@dataclass(frozen=True, eq=False)
class ShownRun:
    """Run with its embeddings file, the neighbours read from the file, and the names of the classes.

    Methods identify a test sample by `row`, its index in `test`. `over` returns the URL of an image to be drawn over
    the image of a sample, "" for none. `own_indices` are the sample indices (n,) in the data set of the run if those in
    `test` are indices in that of another run, in links to this run.
    """

    run: Run
    source: Path
    test: TestNeighbours
    name: Callable[[int], str]
    over: Callable[[int], str] = lambda index: ""
    own_indices: Ints | None = None

    @property
    def tag(self) -> str:
        """Cache key that changes when the embeddings file changes."""
        return f"{self.source.name} {self.source.stat().st_mtime_ns}"

    def class_of(self, row: int) -> str:
        """Return the name of the class of a sample."""
        return self.name(int(self.test.labels[row]))

    def forces(self, row: int, other: int | None = None) -> str:
        """Return the URL query string of a link to the forces between query `row` and neighbour `other`.

        Returns "" if the query's class has no other sample.
        """
        test = self.test
        indices = test.indices if self.own_indices is None else self.own_indices
        if test.positives.nearest[row] < 0:
            return ""
        pair = f"{self._query}&query={indices[row]}"
        if other is None:
            return pair
        return f"{pair}&{'right' if test.labels[other] == test.labels[row] else 'wrong'}={indices[other]}"

    @cached_property
    def _query(self) -> str:
        return urlencode({"run": self.run.id})

    def tile(self, row: int, *lines: str, forces: str = "") -> neighbour_grid.Tile:
        """Return the tile of a sample shown as a query, with the texts `lines` below it."""
        index = int(self.test.indices[row])
        return neighbour_grid.Tile(index, self._title(row), lines, over=self.over(index), forces=forces)

    def neighbour(self, row: int, right: bool | None, *lines: str, forces: str = "") -> neighbour_grid.Neighbour:
        """Return the tile of a sample shown as a neighbour; `right` is True if the sample has the query's class."""
        index = int(self.test.indices[row])
        return neighbour_grid.Neighbour(
            index,
            self._title(row),
            lines,
            over=self.over(index),
            forces=forces,
            right=right if self.test.has_labels else None,
        )

    def _title(self, row: int) -> str:
        """Return the title of a tile: the name of the class, or the number of the sample if there are no labels."""
        return self.class_of(row) if self.test.has_labels else f"sample {self.test.indices[row]}"

    def near(self, row: int, k: int, *, forces: bool = True) -> list[neighbour_grid.Neighbour]:
        """Return the tiles of the k nearest neighbours of a sample, each with its distance.

        If `forces` is True, each tile has a link to the forces between the two samples.
        """
        test = self.test
        test.search_rows([row])
        nearest = zip(test.neighbours[row, :k], test.distances[row, :k], test.right[row, :k], strict=True)
        return [
            self.neighbour(other, bool(right), f"{distance:.3f}", forces=self.forces(row, other) if forces else "")
            for other, distance, right in nearest
        ]


def headed(what: str, title: str, sentence: str, imported: str | None = None) -> ShownRun | None:
    """Show the head of an Inspection page (title, select box, sentence); return the run with its last evaluation.

    If the run has no evaluation that can be read, a button that starts one is shown, and None is returned. `what` names
    the content that the page shows, for example "neighbours"; `imported` is the sentence for an embedding set, by
    default the same.
    """
    run = run_picker.head(title, sentence, imported)
    if run is None:
        return None
    source = run.embeddings()
    if source is None:
        if not run.is_logged:
            st.markdown(f"This run has not been evaluated yet. Evaluate it to see its {what}.")
        job_button.offer(run, "evaluate")
        return None
    if outdated(run, source):
        st.caption("The run has been trained further since its last evaluation, which is shown below.")
        job_button.offer(run, "evaluate")
    try:
        searched = learned(source)
        refuse_other_data(run, source, searched)
        return ShownRun(run, source, searched, naming(run))
    except Unreadable as error:
        st.error(words.plain(error), icon=":material/broken_image:")
        job_button.offer(run, "evaluate")
        return None


def refuse_unlabelled(shown: ShownRun, what: str) -> bool:
    """If an embedding set has no labels, say why the page cannot show `what`; return True in this case."""
    if shown.test.has_labels or not shown.run.is_embedding_set:
        return False
    st.info(
        f"This embedding set has no labels, so there are no {what} to show. Import it again with a column of labels.",
        icon=":material/label_off:",
    )
    return True
