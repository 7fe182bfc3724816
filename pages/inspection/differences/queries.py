"""Lists of the Differences page: queries with their neighbours in A and in B, and samples with doubtful labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from dmlcore.data import Dataset
from dmlcore.inspection import metadata
from dmlcore.inspection.differences import Difference, Doubted, Kind
from dmlcore.significance.noise import spread
from dmlcore.storage.runs import Run
from dmlcore.typing import Ints
from pages.inspection.differences.sides import RunSide
from pages.shared.server import thumbnails
from pages.shared.widgets import export_menu, neighbour_grid, selection
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words import titles
from pages.shared.words.numbers import percent

ROWS = 3  # queries per page; each has one row of neighbours for A and one for B
HERE = "differences"
KINDS: dict[Kind, str] = {
    "lost": "right in A, wrong in B",
    "gained": "wrong in A, right in B",
    "worse": "AP@R fell",
    "better": "AP@R rose",
}
STYLE = """<style>
.difference { margin: 0 0 22px; padding: 4px 14px 2px; border: 1px solid rgb(128 128 128 / .35); border-radius: 8px; }
.difference .head { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: baseline; margin: 8px 0 2px;
  font-size: 14px; }
.difference .head .change { font-weight: 600; font-variant-numeric: tabular-nums; }
.difference .head .links { display: flex; gap: 12px; margin-left: auto; }
.difference .head a { color: inherit; text-decoration: underline; text-underline-offset: 2px; }
.difference .head a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
</style>"""


@dataclass(frozen=True)
class ShownDifference:
    """The two compared sides A and B, their difference, and a function that returns the name of a class."""

    sides: tuple[RunSide, RunSide]
    difference: Difference
    name: Callable[[int], str]

    @property
    def runs(self) -> list[ShownRun]:
        """The runs of A and B, each with its neighbours."""
        sides = zip(self.sides, self.difference.comparison.learned, strict=True)
        return [ShownRun(side.run, side.path, learned, self.name) for side, learned in sides]


def queries(shown: ShownDifference, kind: Kind, only: Ints | None) -> None:
    """Show the queries of one kind page by page, and a button that adopts them as the selection.

    Args:
        only: Data set indices of the samples to which the list is restricted; None for all.
    """
    difference = shown.difference
    positions = difference.queries(kind)
    if only is not None:
        positions = positions[np.isin(difference.indices[positions], only)]
    labels = _labels(shown, positions)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label = st.selectbox(
            "Class of the query",
            [None, *np.unique(labels).tolist()],
            format_func=lambda c: "all classes" if c is None else shown.name(c),
            key=f"difference-class-{kind}",
            width=220,
        )
        k = st.slider("Neighbours k", 3, 12, 8, key="difference-k", width=200)
        if label is not None:
            positions = positions[labels == label]
        _hand_over(shown, positions, KINDS[kind])
    if not len(positions):
        st.info("No query matches.", icon=":material/check:")
        return
    pages = -(-len(positions) // ROWS)
    images = st.container()
    with st.container(horizontal=True, vertical_alignment="center"):
        number = st.pagination(pages, key=f"difference-page-{kind}-{label}")
        st.caption(
            f"{len(positions):,} queries, largest change of AP@R first. The number under a neighbour is its distance."
        )
    with images:
        blocks(shown, positions[(number - 1) * ROWS : number * ROWS], k)


def blocks(shown: ShownDifference, positions: Sequence[int] | Ints, k: int = 8) -> None:
    """Show queries with their k nearest neighbours in A and in B; `positions` are indices into `shown.difference`."""
    run, k = shown.sides[1].run, min(k, shown.runs[0].test.neighbours.shape[1])
    stay, change, precision = (
        shown.difference.neighbour_overlap(k),
        shown.difference.change,
        shown.difference.comparison.average_precision,
    )
    rows_of_tiles = []
    for position in positions:
        index = int(shown.difference.indices[position])
        lines = []
        for number, (mark, side) in enumerate(zip("AB", shown.runs, strict=True)):
            row = int(shown.difference.comparison.rows[number, position])
            tile = side.tile(row)
            ap = f"AP@R {percent(precision[number, position])}"
            caption = tuple(filter(None, (shown.sides[number].words, ap)))
            lines.append(neighbour_grid.RunNeighbours(mark, side.run.id, caption, side.near(row, k, forces=False)))
        words = f"AP@R {percent(precision[0, position])} → {percent(precision[1, position])}"
        gain = spread(float(change[position]), None, sign=True)
        head = [
            f"<span>sample {index:,}</span><bdi>{escape(shown.name(int(_labels(shown, [position])[0])))}</bdi>",
            f'<span class="change">{words} ({gain})</span>',
            f"<span>{round(stay[position] * k)} of {k} neighbours in common</span>",
        ]
        rows_of_tiles.append(_block(head, run, index, partial(neighbour_grid.compared, [(tile, lines)])))
    st.html(STYLE + "".join(rows_of_tiles))


def labels(shown: ShownDifference, doubts: Doubted) -> None:
    """Show samples with labels that most of their neighbours contradict, next to their neighbours in B."""
    st.markdown(
        "None of the 8 nearest neighbours of these samples has their class, and at least 6 share another one, in at "
        f"least half of {doubts.asked} embeddings. **They may be label errors**, or the embeddings do not separate the "
        "classes. Look at the images before you relabel."
    )
    st.caption(
        "Nearest-neighbour editing: Wilson 1972; with learned embeddings: Bahri, Jiang and Gupta 2020 (Deep k-NN for "
        "noisy labels)."
    )
    if not len(doubts.indices):
        st.info("No sample matches.", icon=":material/check:")
        return
    side = shown.runs[1]
    pages = -(-len(doubts.indices) // ROWS)
    with st.container(horizontal=True, vertical_alignment="center"):
        number = st.pagination(pages, key="doubted-page")
        st.caption(f"{len(doubts.indices):,} samples, most often doubted first.")
        origin = "labels that neighbours doubt"
        selection.button(
            side.run, doubts.indices, f"Select these {len(doubts.indices):,}", origin, key="select-doubted"
        )
        export_menu.csv_button(side.run, "CSV", "doubted-labels", "csv-doubted", partial(_doubted_csv, shown, doubts))
    row_of = {int(index): row for row, index in enumerate(side.test.indices)}
    cells = []
    for at in range((number - 1) * ROWS, min(number * ROWS, len(doubts.indices))):
        index = int(doubts.indices[at])
        row = row_of[index]
        tiles = side.tile(row, *filter(None, [shown.sides[1].words])), side.near(row, 8, forces=False)
        own, other = side.class_of(row), shown.name(int(doubts.label[at]))
        head = [
            f"<span>sample {index:,}, labelled</span><bdi>{escape(own)}</bdi>",
            f'<span class="change">neighbours say <bdi>{escape(other)}</bdi></span>',
            f"<span>in {doubts.views[at]} of {doubts.asked} embeddings, {percent(doubts.votes[at])} of votes</span>",
        ]
        cells.append(_block(head, side.run, index, partial(neighbour_grid.html, [tiles])))
    st.html(STYLE + "".join(cells))


def _doubted_csv(shown: ShownDifference, doubts: Doubted, data: Dataset) -> str:
    suggested = [shown.name(label) for label in doubts.label.tolist()]
    more = {
        "suggested_label": suggested,
        "embeddings": doubts.views.tolist(),
        "share_of_votes": [f"{share:.4f}" for share in doubts.votes.tolist()],
    }
    return metadata.samples_csv(data, doubts.indices, more)


def _hand_over(shown: ShownDifference, positions: Ints, words: str) -> None:
    """Show a button that makes the listed queries the selection; `words` describes them."""
    run = shown.sides[1].run
    if run.is_embedding_set:
        a, b = (titles.label(side.run) for side in shown.sides)
    else:
        a, b = (side.words if side.run.id == run.id else f"{side.words} of another run" for side in shown.sides)
    selection.button(
        run,
        shown.difference.indices[positions],
        f"Select these {len(positions):,}",
        f"{words}: A is {a}, B is {b}",
        key="select-queries",
    )


def _labels(shown: ShownDifference, positions: Sequence[int] | Ints) -> Ints:
    labels: Ints = shown.runs[0].test.labels[shown.difference.comparison.rows[0][positions]]
    return labels


def _block(head: Sequence[str], run: Run, index: int, images: Callable[[str, Callable[[int], str]], str]) -> str:
    def link(sample: int) -> str:
        return f"neighbours?{urlencode({'run': run.id, 'query': sample})}"

    forces = f"failures?{urlencode({'run': run.id, 'query': index})}"
    links = f'<a href="{escape(link(index))}">neighbours</a><a href="{escape(forces)}">forces</a>'
    return (
        f'<section class="difference"><div class="head">{"".join(head)}<span class="links">{links}</span></div>'
        f"{images(thumbnails.address(run), link)}</section>"
    )
