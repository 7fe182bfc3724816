"""Handle of an embedding set in a Python session: scores, neighbours, failures, and the selection of the browser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dmlcore import metrics
from dmlcore.data.embedding_sets.stored import EmbeddingSet
from dmlcore.experiments import embedding_sets
from dmlcore.inspection import neighbours, selections, tags_and_views
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage import atomic_files
from dmlcore.storage.csv_text import as_csv
from dmlcore.storage.runs import Run, RunError
from dmlcore.typing import Floats, Ints


class Scores(NamedTuple):
    """Retrieval scores in 0..1, higher is better; None if a score was not computed.

    Attributes:
        recall_at_1: Recall@1, the share of samples whose nearest other sample has their class.
        map_at_r: MAP@R.
        r_precision: R-precision; None for very large sets, of which only a random sample of the queries was scored.
    """

    recall_at_1: float | None
    map_at_r: float | None
    r_precision: float | None


class EmbeddingSetHandle:
    """A stored embedding set; row numbers count the given samples from 0.

    Selections and tags are read again at each access, so they follow what happens in the browser.

    Args:
        run: The stored set.
        url: Address of its map in the app.
    """

    def __init__(self, run: Run, url: str) -> None:
        if not run.is_embedding_set:
            raise RunError(f"{run.id} is a training run, not an embedding set; load its network with dmlcore.load")
        self.run, self.url = run, url

    @property
    def scores(self) -> Scores | None:
        """Scores of all samples, each searched among all others; None for a set without labels."""
        row = self.run.scores().get("inputs")
        if row is not None:
            return Scores(row["recall_at"].get("1"), row.get("map_at_r"), row.get("r_precision"))
        searched = self._searched()
        return Scores(searched.recall_at_1, searched.map_at_r, None) if searched.has_labels else None

    def neighbours(self, k: int = 8) -> tuple[Floats, Ints]:
        """Return the exact nearest other samples of each sample.

        Args:
            k: Number of neighbours, at most N - 1.

        Returns:
            Euclidean distances (N, k), ascending, and row numbers (N, k). Distances are between the normalised vectors,
            unless the set was imported without normalisation; d corresponds to a cosine similarity of 1 - d² / 2.

        Raises:
            ValueError: k is not in 1..N-1.
        """
        searched = self._searched()
        lists = searched.neighbours
        is_complete = searched.approximation is None and bool((lists[:, 0] >= 0).all())
        if is_complete and type(k) is int and 1 <= k <= lists.shape[1]:  # any other k is checked by the search
            return searched.distances[:, :k].copy(), lists[:, :k].astype(np.int64)
        return metrics.nearest(searched.embeddings, k=k)

    def failures(self) -> Ints:
        """Return the rows (m,) of samples whose nearest other sample has another class.

        The worst come first, which are those whose nearest sample of the same class has the highest rank. Samples that
        are alone in their class are left out. Of very large sets, only a random part of the samples is examined.

        Raises:
            ValueError: The set has no labels.
        """
        searched = self._searched()
        if not searched.has_labels:
            raise ValueError("failures need labels of at least two classes; pass labels to dmlcore.show")
        rows = np.flatnonzero(searched.failures)
        order = np.lexsort((rows, searched.average_precision[rows], -searched.positives.rank[rows]))
        return rows[order]

    @property
    def selection(self) -> Ints:
        """Rows (m,) that were selected last in the browser, for example with the lasso; empty if there are none.

        Clearing a selection in the browser does not change this property.
        """
        newest = selections.newest(self.run)
        return self._rows([] if newest is None else newest.indices)

    def tagged(self, name: str) -> Ints:
        """Return the rows (m,) that have a tag.

        Raises:
            KeyError: No sample has this tag.
        """
        tags = tags_and_views.read(self.run).tags
        if name not in tags:
            raise KeyError(f"no sample has the tag {name!r}; tags: {', '.join(tags) or 'none'}")
        return self._rows(tags[name])

    def to_csv(self, path: str | Path, rows: ArrayLike | None = None) -> Path:
        """Write samples to a CSV file, with all their columns and their nearest neighbour.

        The columns are `row`, those given to `dmlcore.show`, then `nearest_row`, `nearest_distance` and, with labels,
        `nearest_is_right`. An existing file is replaced.

        Args:
            path: File to write.
            rows: Row numbers (m,) in the order of the file, such as `selection` or `failures()`; by default all rows.

        Returns:
            The path.

        Raises:
            IndexError: A row number is not in 0..N-1.
        """
        stored = embedding_sets.of_run(self.run)
        chosen = self._checked(np.arange(len(stored.labels)) if rows is None else rows, len(stored.labels))
        to = Path(path).expanduser()
        text = as_csv(self._lines(stored, chosen))
        atomic_files.replace(to, lambda file: file.write(text.encode()))
        return to

    def _lines(self, stored: EmbeddingSet, rows: Ints) -> Iterable[Sequence[Any]]:
        """Yield the header and one line per row."""
        searched = self._searched()
        searched.search_rows(rows)
        added = ["nearest_row", "nearest_distance"] + ["nearest_is_right"] * searched.has_labels
        yield ["row", *stored.columns.column_names, *added]
        columns = [column.to_pylist() for column in stored.columns.take(rows).columns]
        for at, row in enumerate(rows.tolist()):
            nearest = [int(searched.neighbours[row, 0]), float(searched.distances[row, 0])]
            right = [int(searched.right[row, 0])] if searched.has_labels else []
            yield [row, *(_cell(column[at]) for column in columns), *nearest, *right]

    def _searched(self) -> TestNeighbours:
        path = self.run.embeddings()
        if path is None:
            raise RunError(f"{self.run.id} has no embeddings; import it again")
        return neighbours.read(path)

    def _rows(self, indices: ArrayLike) -> Ints:
        """Return those of the given sample indices that exist in the set."""
        rows = np.asarray(indices, np.int64)
        return rows[rows < len(embedding_sets.of_run(self.run).labels)]

    def _checked(self, rows: ArrayLike, count: int) -> Ints:
        numbers = np.asarray(rows)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise IndexError(f"rows must be a list of row numbers, got {numbers.dtype} of shape {numbers.shape}")
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
            raise IndexError(f"rows must be in 0..{count - 1}, got {numbers.min()} to {numbers.max()}")
        return numbers.astype(np.int64)

    def _summary(self) -> str:
        count, scores = len(embedding_sets.of_run(self.run).labels), self.scores
        text = f"{self.run.spec.name or self.run.id}: {count:,} samples"
        if scores is None or scores.recall_at_1 is None or scores.map_at_r is None:
            return text
        return f"{text}, R@1 {100 * scores.recall_at_1:.1f} %, MAP@R {100 * scores.map_at_r:.1f} %"

    def __repr__(self) -> str:
        return f"<{self._summary()}; {self.url}>"

    def _repr_html_(self) -> str:
        link = f'<a href="{escape(self.url)}" target="_blank" rel="noopener">Open in Explore</a>'
        return f"<p>{escape(self._summary())}. {link}</p>"


def _cell(value: Any) -> Any:
    """Return a value of a column as CSV writes it: numbers unchanged, None as an empty cell, anything else as text."""
    return value if value is None or (isinstance(value, int | float) and not isinstance(value, bool)) else str(value)
