"""Choice of the two sides A and B to compare. Each side is a run with its best weights or a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import streamlit as st

from dmlcore.data import DataError
from dmlcore.inspection.comparison import Incomparable, refuse_other_samples
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.inspection.snapshots import Snapshot, snapshots
from dmlcore.storage import arrays
from dmlcore.storage.arrays import EMBEDDINGS, Unreadable
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.training.forks import fork_spec
from dmlcore.typing import Array
from pages.shared.server import thumbnails
from pages.shared.state import run_reader
from pages.shared.widgets import run_picker
from pages.shared.widgets.matched_sets import matched
from pages.shared.words import titles

BEST = "best"
MOST_SETS = 20  # number of other embedding sets of which the samples are compared with those of A
# URL parameters for the run of B, the weights of A and the weights of B
OTHER, FIRST, SECOND = "other", "before", "after"


@dataclass(frozen=True)
class RunSide:
    """One side of the comparison: a run, the name of its weights ("best" or a step) and the file of its embeddings."""

    run: Run
    weights: str
    path: Path

    @property
    def step(self) -> int | None:
        """Training step of the checkpoint; None for the best weights."""
        return None if self.weights == BEST else int(self.weights)

    @property
    def words(self) -> str:
        """Name of the weights, as displayed; "" for an embedding set."""
        if self.run.is_embedding_set:
            return ""
        return "best weights" if self.step is None else f"step {self.step:,}"


def pick(run: Run) -> tuple[Run, RunSide | None, RunSide | None]:
    """Let the user choose the run of B and the weights of both sides; A is always `run`. The URL stores the choices.

    Returns:
        The run of B, side A and side B. A side is None if no embeddings are stored for its weights.
    """
    line = st.container(horizontal=True, vertical_alignment="bottom")
    a = line.container(width="content")
    other = _other(RunStore(), run, line)
    mine, theirs = _defaults(run, other)
    return other, _weights(run, FIRST, mine, a), _weights(other, SECOND, theirs, line)


def on_same_samples(first: RunSide, second: RunSide, a: TestNeighbours, b: TestNeighbours) -> TestNeighbours:
    """Return the neighbours of side A with the sample numbers of side B; those of embedding sets may differ.

    Raises:
        Incomparable: The sides are not known to be evaluated on the same samples.
    """
    one, two = first.run.spec, second.run.spec
    if first.run.is_embedding_set and second.run.is_embedding_set:
        try:
            return matched(first.run, second.run, a, b, ("A", "B"))
        except DataError as error:
            raise Incomparable(str(error)) from None
    try:
        refuse_other_samples(a, b, lambda: (thumbnails.dataset(one), thumbnails.dataset(two)))
    except DataError:
        if one.data.name != two.data.name:
            raise Incomparable(f"the data sets differ: {one.data.name} and {two.data.name}") from None
        raise Incomparable(
            "these evaluations do not record their samples, and the data set cannot be read; evaluate both runs again"
        ) from None
    return a


def embedded(run: Run) -> list[Snapshot]:
    """Return the snapshots of a run that have embeddings, in order of their steps."""
    return [snapshot for snapshot in snapshots(run) if snapshot.embeddings is not None]


def _options(run: Run) -> dict[str, Path | None]:
    """Map each choice of weights, by its name in the URL, to its embeddings file; None if the file does not exist.

    If the best weights equal a kept checkpoint, as they usually do, they are listed once.
    """
    best = run.embeddings()
    same = _best_step(run) if best else None
    options = {str(snapshot.step): snapshot.embeddings for snapshot in snapshots(run) if snapshot.step != same}
    return ({BEST: best} if best else {}) | options


def _other(store: RunStore, run: Run, into: st.delta_generator.DeltaGenerator) -> Run:
    """Let the user choose the run of side B; return it."""
    data = run.spec.data.name
    wanted = st.query_params.get(OTHER)
    runs = {run.id: run} | run_picker.offered(store, lambda name, brief: brief.data == data, [wanted])
    if run.is_embedding_set and len(runs) > 1:
        del runs[run.id]  # a set has no other weights
    key = f"differences-other-{run.id}"
    st.session_state[key] = wanted if wanted in runs else _partner(run, runs)

    def write() -> None:
        st.query_params[OTHER] = st.session_state[key]
        st.query_params.pop(SECOND, None)

    into.selectbox(
        "Embedding set B" if run.is_embedding_set else "Run of B",
        list(runs),
        key=key,
        format_func=lambda name: _title(run, runs[name]),
        on_change=write,
        width=480,
    )
    return runs[st.session_state[key]]


def _title(run: Run, other: Run) -> str:
    same = "no other embedding set" if run.is_embedding_set else "same run, another step"
    return same if other.id == run.id else titles.label(other)


def _partner(run: Run, runs: dict[str, Run]) -> str:
    """Return the id of the default run for side B.

    The default is the run itself if it has several snapshots, else its parent, else the first run in `runs` with equal
    data settings and seed that has embeddings. For an embedding set it is the first set of the same samples.
    """
    if run.is_embedding_set:
        return _other_set(run, [other for other in runs.values() if other.id != run.id])
    if len(snapshots(run)) > 1:
        return run.id
    if (parent := fork_spec.parent_of(run)) is not None:
        return parent.id
    alike = (
        other.id
        for other in runs.values()
        if other.id != run.id and not other.is_example and _alike(run, other) and other.embeddings()
    )
    return next(alike, run.id)


def _other_set(run: Run, others: list[Run]) -> str:
    """Return the id of the first other embedding set of the same samples, else of the first one, else of the run."""
    content = _content(run)
    for other in others[:MOST_SETS]:
        if content is not None and (its := _content(other)) is not None and np.array_equal(content, its):
            return other.id
    return (others[0] if others else run).id


def _content(run: Run) -> Array | None:
    """Return the sorted identities of the samples of a run, or None if they cannot be read."""
    source = run.embeddings()
    try:
        content = None if source is None else arrays.read(source, EMBEDDINGS, "content", remedy="").get("content")
    except Unreadable:
        return None
    return None if content is None else np.sort(np.ascontiguousarray(content.astype(np.uint8)).view(np.int64)[:, 0])


def _alike(run: Run, other: Run) -> bool:
    try:
        return run.spec.data == other.spec.data and run.spec.seed == other.spec.seed
    except RunError:
        return False


def _defaults(run: Run, other: Run) -> tuple[str, str]:
    """Return the default weights of A and B: first and best checkpoint within one run, best weights for two runs."""
    options = list(_options(run))
    first = next((name for name in options if name != BEST), BEST)
    return (first, BEST if BEST in options else options[-1]) if run.id == other.id and options else (BEST, BEST)


def _weights(run: Run, name: str, default: str, into: st.delta_generator.DeltaGenerator) -> RunSide | None:
    options = _options(run)
    if not options:
        return None
    if run.is_embedding_set:
        return RunSide(run, BEST, next(path for path in options.values() if path is not None))
    wanted = st.query_params.get(name)
    if wanted is not None and wanted == str(_best_step(run)):
        wanted = BEST if BEST in options else wanted
    key = f"differences-{name}-{run.id}"
    chosen = wanted if wanted in options else default if default in options else next(iter(options))
    st.session_state[key] = chosen

    def write() -> None:
        st.query_params[name] = st.session_state[key]

    into.selectbox(
        f"Weights of {'A' if name == FIRST else 'B'}",
        list(options),
        key=key,
        format_func=lambda value: _words(run, value, options),
        on_change=write,
        width=230,
    )
    path = options[chosen]
    return None if path is None else RunSide(run, chosen, path)


def _words(run: Run, value: str, options: dict[str, Path | None]) -> str:
    if value == BEST:
        step = _best_step(run)
        return "best" if step is None else f"best: step {step:,}"
    return f"step {int(value):,}" + ("" if options[value] else " (not embedded)")


def _best_step(run: Run) -> int | None:
    """Return the step of the evaluated best weights, or None if the scores do not record it."""
    tested = run_reader.reader().history(run).scores.get("trained")
    return int(tested["step"]) if tested else None
