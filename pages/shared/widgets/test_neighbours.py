"""What a run has learned, kept for all visitors, with the names of its classes."""

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
    """Neighbours and scores of an embeddings file; raises Unreadable."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError:  # reading it says what is wrong
        changed = 0
    return _learned(path, changed)


def refuse_other_data(run: Run, source: Path, neighbours: TestNeighbours) -> None:
    """Raise Unreadable if the embeddings name samples that the data set has not; one that is gone is not asked."""
    with suppress(DataError):
        count, last = len(thumbnails.dataset(run.spec).labels), int(neighbours.indices.max())
        if last >= count:
            raise Unreadable(
                f"{source.name} is of other data: it names sample {last:,}, and the data set of this run has "
                f"{count:,}. Evaluate the run again."
            )


@st.cache_resource(max_entries=6, show_spinner="Finding the nearest neighbours …")
def _learned(path: Path, changed: int) -> TestNeighbours:
    return read(path)


def outdated(run: Run, source: Path) -> bool:
    """Whether the run was trained on after these embeddings were written: their scores are then not its last row."""
    try:
        return _last_scored(run.path, (run.path / METRICS).stat().st_size) != source.stem
    except (OSError, ValueError):
        return False


@st.cache_data(max_entries=64, show_spinner=False)
def _last_scored(path: Path, size: int) -> str | None:
    """The weights that metrics.jsonl scores after its last step, if it does; size is the key of the cache."""
    rows, _ = Run(path).metrics()
    last = next((row for row in reversed(rows) if "weights" in row or row.get("kind") == "step"), {})
    return last.get("weights")


def naming(run: Run) -> Callable[[int], str]:
    """The name of a class by its number; says so, and falls back to the number, where the data set is gone."""
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
