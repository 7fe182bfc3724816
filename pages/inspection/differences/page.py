"""Differences page: queries for which two checkpoints of one run, or two runs, retrieve different neighbours."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

import numpy as np
import streamlit as st

from dmlcore.data import DataError
from dmlcore.figures import differences as figures
from dmlcore.inspection import differences, neighbours
from dmlcore.inspection.comparison import Incomparable
from dmlcore.inspection.differences import Difference, Doubted, Kind, Turnover
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.inspection.snapshots import snapshots
from dmlcore.monitoring.estimate.estimate import DataSize, embedding_seconds
from dmlcore.significance.noise import over_classes
from dmlcore.storage.run_directory import LAST
from dmlcore.storage.runs import Run
from dmlcore.typing import Ints
from pages.inspection.differences import queries as queries_view
from pages.inspection.differences import sides as sides_view
from pages.inspection.differences.queries import HERE, KINDS, ShownDifference
from pages.inspection.differences.sides import RunSide
from pages.shared.server import thumbnails
from pages.shared.widgets import error_boundary, job_button, menu, run_picker, selection
from pages.shared.widgets.chart import chart
from pages.shared.widgets.score_context import beside
from pages.shared.widgets.test_neighbours import learned, naming, refuse_other_data
from pages.shared.words import sentences as words
from pages.shared.words.labels import SCORES
from pages.shared.words.numbers import percent

LABELS = "doubted labels"
SHORT = KINDS | {"lost": "lost", "gained": "gained"}  # labels of the selector for kinds of queries; some are shortened
# The lists are next to the charts in a wide window, otherwise below. Eight neighbours fit on one line.
STYLE = """<style>
.st-key-differences > div > [data-testid="stColumn"] { min-width: min(36rem, 100%); }
@media (min-width: 640px) {
  .st-key-differences .neighbours figure.query { width: 84px; }
  .st-key-differences .neighbours .row { gap: 12px; padding-top: 10px; }
  .st-key-differences .neighbours .of { width: 68px; }
  .st-key-differences .neighbours .found { grid-template-columns: repeat(8, minmax(0, 1fr)); gap: 6px; }
}
</style>"""
MANY = 12_000  # up to this number of test samples, all snapshots are read, not only A and B
COMPARED = "with"  # URL parameter of the Neighbours page: runs to compare
QUICK = 60.0  # missing embeddings that take at most this many seconds are computed without asking


def page() -> None:
    run = run_picker.head(
        "Differences",
        "Compare two checkpoints or two runs: see which queries have a correct nearest neighbour in only one of **A** "
        "and **B**.",
        "Compare two embedding sets of the same samples: see which queries have a correct nearest neighbour in only "
        "one of **A** and **B**.",
    )
    if run is None:
        return
    with error_boundary.alone("The comparison"), run_picker.restart_if_gone(run):
        if run.is_logged:
            _embed(run)
            return
        other, first, second = sides_view.pick(run)
        with run_picker.restart_if_gone(other):
            if first is None or second is None:
                if run_picker.present(lacking := run if first is None else other):
                    _embed(lacking)
                return
            _embed(run)
            _compare(first, second)


def _compare(first: RunSide, second: RunSide) -> None:
    if first.path == second.path:
        _nothing_to_compare(first.run)
        return
    a, b = learned(first.path), learned(second.path)
    if not (a.has_labels and b.has_labels):
        _without_labels(first, second)
        return
    for side, found_there in ((first, a), (second, b)):
        refuse_other_data(side.run, side.path, found_there)
    try:
        a = sides_view.on_same_samples(first, second, a, b)
        difference = differences.difference(a, b)
    except Incomparable as error:
        with st.container(border=True):
            st.badge("Cannot be compared", icon=":material/block:", color="red")
            st.text(words.plain(error).replace("run 2", "B").replace("run 1", "A"))
        return
    _summary(difference, first, second)
    body(ShownDifference((first, second), difference, naming(second.run)))


@st.fragment
def body(shown: ShownDifference) -> None:
    """Show the charts and the lists of queries. As a fragment, it reruns alone when the user interacts with it."""
    runs = [side.run for side in shown.sides]
    if not all(map(run_picker.present, runs)):
        return
    run = runs[1]
    with error_boundary.alone("The comparison"), run_picker.restart_if_gone(*runs):
        chosen = selection.chosen(run)
        if chosen is not None:
            selection.bar(run, chosen, here=HERE)
        st.html(STYLE)
        with st.container(key="differences"):
            left, right = st.columns(2, gap="small")
        with left:
            point = _charts(shown)
        with right:
            _queries(shown, point, None if chosen is None else chosen.indices)


def _queries(shown: ShownDifference, point: list[int] | None, selected: Ints | None) -> None:
    """Show the query of the selected point, if any, and the queries of the chosen kind.

    Args:
        point: Index of the query in `shown.difference`, as a list with one element; None if no point is selected.
        selected: Data set indices of the selected samples; None without a selection.
    """
    difference = shown.difference
    counts = {kind: len(difference.queries(kind)) for kind in KINDS}
    if point is not None:
        st.markdown("**Query of the selected point**")
        queries_view.blocks(shown, point)
    kind: Kind | Literal["labels"] = st.segmented_control(
        "Queries",
        [*KINDS, "labels"],
        default="lost" if counts["lost"] or not counts["gained"] else "gained",
        required=True,
        key="difference-kind",
        format_func=lambda kind: f"{SHORT[kind]} ({counts[kind]:,})" if kind in SHORT else LABELS,
    )
    if kind == "labels":
        queries_view.labels(shown, _doubted(shown))
        return
    only = None
    if selected is not None and st.toggle("Only selected samples", key="difference-only", value=True):
        only = selected
    queries_view.queries(shown, kind, only)


def _summary(change: Difference, first: RunSide, second: RunSide) -> None:
    """Show R@1 and MAP@R of A and B, the numbers of queries lost and gained from A to B, and McNemar's p-value."""
    comparison = change.comparison
    a, b = comparison.right.mean(axis=1)
    before, after = comparison.average_precision.mean(axis=1)
    both_right, lost, gained, neither = comparison.counts(0, 1)
    with st.container(horizontal=True, key="difference-summary"):
        for name, x, y in (("R@1, A → B", a, b), ("MAP@R, A → B", before, after)):
            st.metric(name, f"{percent(x)} → {percent(y)}", f"{100 * (y - x):+.1f}", border=True, help=SCORES)
        st.metric("right in A only", f"{lost:,}", "lost", delta_color="off", delta_arrow="off", border=True)
        st.metric("right in B only", f"{gained:,}", "gained", delta_color="off", delta_arrow="off", border=True)
    p = comparison.p_value(0, 1)
    chance = f"= {p:.2g}" if p >= 0.001 else "< 0.001"
    of_classes = comparison.by_class(0, 1)
    paired = f"\n\nB minus A: {over_classes(of_classes)}" if len(of_classes) > 1 else ""
    trained_again = first.run.id != second.run.id and not second.run.is_embedding_set
    other = " Another seed may change the result by more." if trained_again else ""
    st.caption(
        f"{both_right:,} of {len(change.indices):,} queries are right in both A and B, and {neither:,} in neither "
        f"(McNemar test: p {chance}).",
        help=f"McNemar p is the probability that two equally good embeddings differ at least this much on these "
        f"queries.{other}{paired}\n\n{beside(second.run).strip()}",
    )


def _charts(shown: ShownDifference) -> list[int] | None:
    """Show AP@R of every query in A against B and, for one run with several snapshots, the changes between snapshots.

    Returns:
        The index of the clicked query in `shown.difference`, as a list with one element; None if no point is selected.
    """
    difference = shown.difference
    before, after = difference.comparison.average_precision
    run = shown.sides[0].run
    snaps = [snapshot for snapshot in sides_view.embedded(run) if snapshot.embeddings]
    over = run.id == shown.sides[1].run.id and len(snaps) > 2 and len(difference.indices) <= MANY
    points = len(before) <= figures.MOST_POINTS
    event = chart(
        f"scatter-{shown.sides[0].path.stem}-{shown.sides[1].path.stem}-{run.id}",
        figures.scatter(before, after, difference.comparison.right, difference.indices),
        f"AP@R of {len(before):,} queries in A against B; mean {percent(before.mean())} and {percent(after.mean())}",
        on_select="rerun" if points else "ignore",
    )
    st.caption(
        "Each point is a query; above the diagonal, B is better."
        + (" Click a point to see its neighbours." if points else " Cells show the number of queries.")
    )
    if over:
        flips = _turnover(tuple(snapshot.embeddings for snapshot in snaps if snapshot.embeddings))
        chart(
            f"turnover-{run.id}",
            figures.turnover([snapshot.step for snapshot in snaps], flips.right, flips.gained, flips.lost),
            f"R@1 and changed queries between {len(snaps)} checkpoints: {flips.gained.sum():,} gained, "
            f"{flips.lost.sum():,} lost",
        )
        often = int((flips.forgotten > 1).sum())
        st.caption(
            f"From one checkpoint to the next, the nearest neighbour became right {int(flips.gained.sum()):,} times "
            f"and wrong {int(flips.lost.sum()):,} times.",
            help=f"{often:,} {'query was' if often == 1 else 'queries were'} lost more than once (forgetting events, "
            "Toneva et al. 2019, here of test queries).",
        )
    picked = getattr(event, "selection", {}).get(figures.PICKED, []) if points else []
    if not picked:
        return None
    return np.flatnonzero(difference.indices == int(picked[0]["sample"])).tolist()[:1] or None


# `neighbours.read` has no cache: a run may have more snapshots than the cache of the page has entries
@st.cache_resource(max_entries=6, show_spinner="Reading checkpoints …")
def _turnover(paths: tuple[Path, ...]) -> Turnover:
    return differences.turnover([neighbours.read(path) for path in paths])


def _doubted(shown: ShownDifference) -> Doubted:
    """Find doubtful labels from the neighbours in A and B or, for a run that is not too large, in all trained
    snapshots.
    """
    paths = [side.path for side in shown.sides]
    if shown.sides[1].run.is_embedding_set:
        return _doubts_of_sets(tuple(paths), shown.difference.comparison.learned)
    if shown.sides[0].run.id == shown.sides[1].run.id and len(shown.difference.indices) <= MANY:
        embedded = sides_view.embedded(shown.sides[0].run)
        paths = [snapshot.embeddings for snapshot in embedded if snapshot.step and snapshot.embeddings] or paths
    return _doubts(tuple(dict.fromkeys(paths)))


@st.cache_resource(max_entries=6, show_spinner="Comparing labels with neighbours …")
def _doubts_of_sets(paths: tuple[Path, ...], _learned: tuple[TestNeighbours, ...]) -> Doubted:
    return differences.find_label_errors(_learned)


@st.cache_resource(max_entries=6, show_spinner="Comparing labels with neighbours …")
def _doubts(paths: tuple[Path, ...]) -> Doubted:
    return differences.find_label_errors([neighbours.read(path) for path in paths])


def _embed(run: Run) -> None:
    """If it takes little time, compute the run's missing embeddings; otherwise show a button that starts the job."""
    missing = [snapshot for snapshot in snapshots(run) if snapshot.embeddings is None]
    if run.embeddings() is None:
        job_button.offer(run, "evaluate", at_once=(run.path / LAST).exists() and _is_quick(run, 1))
    elif missing:
        st.caption(f"{len(missing)} kept checkpoints of this run are not embedded yet. Embed them to compare them.")
        job_button.offer(run, "snapshots", at_once=_is_quick(run, len(missing)))


def _is_quick(run: Run, times: int) -> bool:
    """Return True if embedding the test split `times` times is estimated to take at most QUICK seconds."""
    with suppress(DataError), st.spinner("Reading the data set …", show_time=True):
        data = thumbnails.dataset(run.spec)
        samples = {split: len(rows) for split, rows in data.splits.items()}
        classes = len(np.unique(data.labels[data.splits["train"]]))
        size = DataSize(data.inputs.shape[1:], classes, samples["train"], samples["validation"], samples["test"])
        return embedding_seconds(run, size, times * size.test) <= QUICK
    return False


def _without_labels(first: RunSide, second: RunSide) -> None:
    """Say that correct neighbours need labels, and link to the page that compares neighbours without labels."""
    with st.container(border=True):
        st.markdown(
            "**These embedding sets have no labels**, so no neighbour is correct or wrong. Import them with labels to "
            "see differences."
        )
        parameters = {"run": first.run.id, COMPARED: second.run.id}
        menu.link("neighbours", "Compare neighbours next to each other", parameters)


def _nothing_to_compare(run: Run) -> None:
    with st.container(border=True):
        if run.is_embedding_set:
            st.markdown(
                "**A and B are the same.** To compare, import other vectors of the same samples as another embedding "
                "set, with the same ids or image files."
            )
            return
        st.markdown(
            "**A and B are the same.** Choose other weights or another run for B. To compare checkpoints, train a run "
            "that keeps them (*Schedule details: Keep a checkpoint every*)."
        )
        menu.link("settings", "Train one like it", {"like": run.id})


page()
