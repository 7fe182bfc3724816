"""Neighbours of a run's test samples, cached for all visitors, and the names of the run's classes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import streamlit as st

from dmlcore.data import DataError
from dmlcore.inspection.neighbours import TestNeighbours, read
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.run_directory import METRICS
from dmlcore.storage.runs import Run
from pages.shared.server import thumbnails
from pages.shared.words import sentences as words


def learned(path: Path) -> TestNeighbours:
    """Return the neighbours and scores of the test samples in an embeddings file, cached. Raises Unreadable."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError:  # ignored here, because the function that reads the file reports the error
        changed = 0
    return _learned(path, changed)


def refuse_other_data(run: Run, source: Path, neighbours: TestNeighbours) -> None:
    """Raise Unreadable if the embeddings contain sample indices that do not exist in the run's data set.

    Nothing is checked if the data set cannot be read.
    """
    with suppress(DataError):
        count, last = len(thumbnails.dataset(run.spec).labels), int(neighbours.indices.max())
        if last >= count:
            raise Unreadable(
                f"{source.name} belongs to other data: it contains sample {last:,}, but the data set of this run has "
                f"{count:,} samples. Evaluate the run again."
            )


@st.cache_resource(max_entries=6, show_spinner="Finding the nearest neighbours …")
def _learned(path: Path, changed: int) -> TestNeighbours:
    return read(path)


def outdated(run: Run, source: Path) -> bool:
    """Return True if the run was trained further after the embeddings file `source` was written."""
    try:
        return _last_scored(run.path, (run.path / METRICS).stat().st_size) != source.stem
    except (OSError, ValueError):
        return False


@st.cache_data(max_entries=64, show_spinner=False)
def _last_scored(path: Path, size: int) -> str | None:
    """Return the name of the last scored weights; None if training continued after scoring or nothing was scored.

    `size` is only a cache key.
    """
    rows, _ = Run(path).metrics()
    last = next((row for row in reversed(rows) if "weights" in row or row.get("kind") == "step"), {})
    return last.get("weights")


def naming(run: Run) -> Callable[[int], str]:
    """Return a function that maps class numbers to class names.

    If the data set cannot be read, a warning is shown and the names are "class 3" and so on.
    """
    names: tuple[str, ...] = ()
    try:
        with st.spinner("Reading the data set …", show_time=True):
            data = thumbnails.dataset(run.spec)
        names = data.class_names
        if data.image is None:
            st.caption(
                f"This data set has no images: a tile shows the {data.inputs.shape[1]} input values of a sample as "
                "bars, from the smallest to the largest value of the data set."
            )
    except DataError as error:
        st.warning(
            "No images and no class names: the data set of this run cannot be read.", icon=":material/hide_image:"
        )
        st.text(words.plain(error))
    return lambda label: names[label] if label < len(names) else f"class {label}"
