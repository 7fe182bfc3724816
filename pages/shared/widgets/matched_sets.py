"""Two embedding sets of the same samples, shown with the sample numbers of one of them."""

from __future__ import annotations

import streamlit as st

from dmlcore.experiments import embedding_sets
from dmlcore.inspection import matched_sets
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.runs import Run


def matched(
    run: Run, target: Run, learned: TestNeighbours, target_learned: TestNeighbours, names: tuple[str, str]
) -> TestNeighbours:
    """Return the neighbours of an embedding set with the sample and class numbers of another set.

    Args:
        run: Embedding set with the neighbours `learned`.
        target: Embedding set whose numbers are adopted, with the neighbours `target_learned`.
        names: Names of `run` and `target` in messages.

    Raises:
        Incomparable: The sets do not hold the same samples, or give them different labels.
        DataError: The files of a set cannot be read.
    """
    if matched_sets.hold_equal_samples(learned, target_learned):
        return learned
    source, other = run.embeddings(), target.embeddings()
    key = tuple((str(path), path.stat().st_mtime_ns) for path in (source, other) if path is not None)
    return _matched(key, run, target, learned, names)


@st.cache_resource(max_entries=4, show_spinner="Matching the samples …")
def _matched(
    key: tuple[tuple[str, int], ...], _run: Run, _target: Run, _learned: TestNeighbours, names: tuple[str, str]
) -> TestNeighbours:
    one, two = embedding_sets.of_run(_run), embedding_sets.of_run(_target)
    return matched_sets.renumber(_learned, matched_sets.match_samples(one, two, names), two)
