"""Embeddings of a run, with labels and names, as exports and reports read them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dmlcore.data import Dataset
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.runs import Run
from dmlcore.typing import Ints, Singles


class ExportError(ValueError):
    """Error for an export that is not possible; the message gives the reason and an alternative."""


@dataclass(frozen=True, eq=False)
class EmbeddingTable:
    """Embeddings to export: those of a whole split or of selected samples.

    Args:
        run: Run whose network computed the embeddings.
        weights: Digest of the weights that computed the embeddings.
        learned: Neighbours and scores of the whole split.
        data: Data set of the run; None if it cannot be read, in which case names, keys and images are missing.
        rows: Row indices (n,) in `learned` of the samples to export.
        split: Split that the embeddings belong to.
    """

    run: Run
    weights: str
    learned: TestNeighbours
    data: Dataset | None
    rows: Ints
    split: str = "test"

    @property
    def indices(self) -> Ints:
        """Sample indices (n,) in the data set."""
        return self.learned.indices[self.rows]

    @property
    def labels(self) -> Ints:
        """Class labels (n,)."""
        return self.learned.labels[self.rows]

    @property
    def embeddings(self) -> Singles:
        """Embeddings (n, D)."""
        return self.learned.embeddings[self.rows].astype(np.float32, copy=False)

    def class_name(self, label: int) -> str:
        """Return the name of a class, or for example "class 7" if the data set cannot be read."""
        names = self.data.class_names if self.data else ()
        return names[label] if 0 <= label < len(names) else f"class {label}"

    def names(self) -> list[str]:
        """Return the class name of each row."""
        return [self.class_name(int(label)) for label in self.labels]

    def keys(self) -> list[str]:
        """Return the key of each row, which is the name of its image in the data set, or "" if there are no keys."""
        known = self.data.keys if self.data else None
        return ["" if known is None else str(known[int(index)]) for index in self.indices]

    def splits(self) -> list[str]:
        """Return the split name of each row: "gallery" for gallery samples, otherwise `split`."""
        return ["gallery" if searched else self.split for searched in self.learned.is_gallery[self.rows]]


def table(
    run: Run,
    source: Path,
    learned: TestNeighbours,
    data: Dataset | None = None,
    selection: ArrayLike | None = None,
    split: str = "test",
) -> EmbeddingTable:
    """Return the embeddings of a run to export, restricted to selected samples if given.

    Args:
        run: Run to export.
        source: Embeddings file; its stem is the digest of the weights.
        learned: Content of `source`, with neighbours and scores.
        data: Data set of the run, for names, keys and images.
        selection: Sample indices in the data set; samples outside the split are ignored. By default all samples of the
            split are exported.
        split: Split that the embeddings belong to.

    Raises:
        ExportError: No selected sample is in the split.
    """
    rows = np.arange(len(learned.labels))
    if selection is not None:
        rows = rows[np.isin(learned.indices, np.asarray(selection))]
        if not len(rows):
            raise ExportError(f"no sample of the selection is in the {split} split of this run; drop the selection")
    return EmbeddingTable(run, source.stem, learned, data, rows, split)
