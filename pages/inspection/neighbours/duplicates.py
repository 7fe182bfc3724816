"""Views of possible label errors: near-duplicates across classes, and samples whose neighbours share another class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from dmlcore.data import DataError
from dmlcore.data.dataset import ImageFile
from dmlcore.inspection import duplicates, metadata
from dmlcore.inspection.duplicates import SamplePairs
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.inspection.selections import Selection
from pages.inspection.neighbours import queries as queries_view
from pages.inspection.neighbours import rows as rows_view
from pages.shared.server import thumbnails
from pages.shared.widgets import export_menu, neighbour_grid
from pages.shared.widgets.shown_run import ShownRun

EACH = 12  # pairs on a page
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
ASKED = 8  # number of neighbours that vote on a label


def near_duplicates(shown: ShownRun, selected: Selection | None, label: int | None) -> int:
    """Show the nearest pairs of samples of different classes.

    Returns:
        The data set index of the first sample shown, or -1 if no sample is shown.
    """
    quantile = st.select_slider(
        "Quantile of nearest-neighbour distances",
        SHARES,
        0.01,
        key="closer",
        bind="query-params",
        format_func=lambda q: f"{100 * q:g} %",
        width=420,
        help="Pairs are listed up to this quantile of the distances from all samples to their nearest neighbours",
    )
    pairs = _pairs(shown.run.id, shown.tag, quantile, shown.test)
    within, cutoff = len(pairs.first), pairs.cutoff
    if not within:  # no pair is within the chosen distance, so show the nearest pairs
        pairs = _pairs(shown.run.id, shown.tag, 1.0, shown.test)
    keep = np.ones(len(pairs.first), bool)
    if selected is not None:
        keep = np.isin(shown.test.indices[pairs.first], selected.indices)
        keep |= np.isin(shown.test.indices[pairs.second], selected.indices)
    if label is not None:
        keep &= (shown.test.labels[pairs.first] == label) | (shown.test.labels[pairs.second] == label)
    first, second, distances = pairs.first[keep], pairs.second[keep], pairs.distances[keep]
    if not len(first):
        which = "samples of different classes" if shown.test.has_labels else "of these samples"
        st.info(f"No two {which} are close to each other.", icon=":material/check:")
        return -1
    different = " of different classes" if shown.test.has_labels else ""
    st.caption(
        (
            f"{len(first):,} pairs{different} are within distance {cutoff:.4f}, nearest first. "
            if within
            else f"No pair{different} is within distance {cutoff:.4f}. These are the nearest pairs. "
        )
        + "They may show the same object"
        + (", a wrong label, or classes that this embedding does not separate." if different else ".")
        + (
            ""
            if pairs.complete
            else f" Only {shown.test.neighbours.shape[1]} neighbours per sample are stored, so there may be more pairs."
        )
    )
    number = queries_view.page_of(
        f"pairs {shown.run.id} {quantile} {label} {selected and selected.id}", len(first), EACH, "pairs"
    )
    part = slice((number - 1) * EACH, number * EACH)
    same = _same_inputs(shown)

    tiles = []
    for one, other, distance in zip(first[part], second[part], distances[part], strict=True):
        left, right = (
            shown.tile(row, *([f"sample {shown.test.indices[row]}"] if different else [])) for row in (one, other)
        )
        words = f"distance {distance:.4f}" + (" · the same image twice" if same(left.index, right.index) else "")
        tiles.append((words, left, right))
    st.html(neighbour_grid.pairs(tiles, thumbnails.address(shown.run), rows_view.link(shown.run)))
    both_sides = np.unique(np.concatenate([first, second]))
    indices = shown.test.indices
    with st.container(horizontal=True):
        rows_view.select_button(
            shown, both_sides, "samples", f"gallery: near-duplicates{' across classes' if different else ''}"
        )
        export_menu.csv_button(
            shown.run,
            f"{len(first):,} pairs as CSV",
            "near-duplicates",
            "csv-pairs",
            lambda data: metadata.pairs_csv(data, indices[first], indices[second], distances),
        )
    return tiles[0][1].index


def suspects(shown: ShownRun, selected: Selection | None, label: int | None) -> int:
    """Show samples whose neighbours agree on another class, and these neighbours.

    Returns:
        The data set index of the first sample shown, or -1 if no sample is shown.
    """
    least = st.slider(
        f"Neighbours of one other class, of {ASKED}",
        ASKED // 2,
        ASKED,
        6,
        key="agree",
        bind="query-params",
        width=300,
        help="Minimum number of neighbours of one other class; none may be of the sample's own class",
    )
    doubts = duplicates.find_suspects(shown.test, ASKED, least / ASKED)
    keep = ~shown.test.is_gallery[doubts.rows]
    if selected is not None:
        keep &= np.isin(shown.test.indices[doubts.rows], selected.indices)
    if label is not None:
        keep &= shown.test.labels[doubts.rows] == label
    rows, agreed, votes = doubts.rows[keep], doubts.label[keep], doubts.votes[keep]
    if not len(rows):
        st.info(
            f"No sample has {least} or more neighbours of one other class, and none of its own, among its "
            f"{doubts.asked} nearest. Choose a smaller number.",
            icon=":material/check:",
        )
        return -1
    have = "samples have" if len(rows) > 1 else "sample has"
    st.caption(
        f"{len(rows):,} {have} {least} or more neighbours of one other class, and none of the own, among the "
        f"{doubts.asked} "
        "nearest. The label may be wrong, or the embedding confuses two classes. Look at the images before you relabel."
    )
    each = queries_view.ROWS
    number = queries_view.page_of(
        f"suspects {shown.run.id} {least} {label} {selected and selected.id}", len(rows), each, "samples"
    )
    part = slice((number - 1) * each, number * each)
    vote_words = {
        int(row): f"{vote} of {doubts.asked}: {shown.name(int(other))}"
        for row, other, vote in zip(rows[part], agreed[part], votes[part], strict=True)
    }
    rows_view.one_run(shown, rows[part], doubts.asked, lambda row: vote_words[int(row)])
    with st.container(horizontal=True):
        rows_view.select_button(shown, rows, "samples", "gallery: neighbours agree on another class")
        more = {"suggested_label": [shown.name(int(label)) for label in agreed], "votes": votes.tolist()}
        export_menu.csv_button(
            shown.run,
            f"{len(rows):,} samples as CSV",
            "suspicious-labels",
            "csv-suspects",
            lambda data: metadata.samples_csv(data, shown.test.indices[rows], more),
        )
    return int(shown.test.indices[rows[part][0]])


def _same_inputs(shown: ShownRun) -> Callable[[int, int], bool]:
    """Return a function that tests if two samples are identical: it compares files if possible, else network inputs."""
    try:
        data = thumbnails.dataset(shown.run.spec)
    except DataError:  # reported above
        return lambda first, second: False
    files, inputs = data.files, data.inputs
    if files is None:
        return lambda first, second: bool(np.array_equal(inputs[first], inputs[second]))
    return lambda first, second: _equal(files[first], files[second])  # comparing `inputs` would decode all images


def _equal(first: ImageFile, second: ImageFile) -> bool:
    try:
        if first.stat().st_size != second.stat().st_size:
            return False
        with first.open("rb") as one, second.open("rb") as other:
            return one.read() == other.read()
    except (OSError, DataError):
        return False


@st.cache_resource(max_entries=16, show_spinner=False)
def _pairs(run: str, tag: str, quantile: float, _found: TestNeighbours) -> SamplePairs:
    return duplicates.across_classes(_found, quantile)
