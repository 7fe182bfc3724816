"""Comparison of the selected run with other runs on the Neighbours page, with filters for queries that one run wins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

import numpy as np
import streamlit as st

from dmlcore.data import DataError
from dmlcore.inspection.comparison import Comparison, Incomparable, compare, refuse_other_samples
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.typing import Ints
from pages.inspection.neighbours import weights as weights_view
from pages.inspection.neighbours.rows import MARKS
from pages.shared.server import thumbnails
from pages.shared.widgets import run_picker
from pages.shared.widgets.matched_sets import matched
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.widgets.test_neighbours import learned
from pages.shared.words import sentences as words
from pages.shared.words import titles
from pages.shared.words.numbers import percent

PARAMETER, KEY = "with", "gallery_with"
EVERY = "every query"
STYLE = """<style>
.beside { border: 0; font-size: 15px; } .beside td, .beside th { border: 0; padding: 2px 18px 2px 0; text-align: left; }
.beside th { background: rgb(128 128 128 / .22); border-radius: 5px; padding: 2px 8px; text-align: center; }
.beside th + td { padding-left: 10px; } .beside td { font-variant-numeric: tabular-nums; }
</style>"""


def choose(run: Run) -> list[str]:
    """Show a box with evaluated runs on the same data set; return the ids of the chosen ones, at most two."""
    data = run.spec.data.name
    named = list(dict.fromkeys(st.query_params.get(PARAMETER, "")[:200].split(",")))
    alike = run_picker.offered(RunStore(), lambda name, brief: brief.data == data and name != run.id, named)
    others = {name: other for name, other in alike.items() if other.embeddings() is not None}
    if not others and PARAMETER not in st.query_params:
        return []
    wanted = [name for name in named if name in others][: len(MARKS) - 1]
    if any(name and name not in others for name in named):
        st.warning(
            "A run in the link cannot be compared with this one. It does not exist here, is not evaluated, or uses "
            "another data set.",
            icon=":material/link_off:",
        )
    st.session_state[KEY] = wanted  # the URL takes precedence over the select box
    st.multiselect(
        "Compare with",
        list(others),
        key=KEY,
        max_selections=len(MARKS) - 1,
        format_func=lambda name: titles.label(others[name]),
        placeholder="other embedding sets" if run.is_embedding_set else "other runs on the same queries",
        on_change=_write,
        help="One or two embedding sets of the same samples; each query then shows the neighbours in every set"
        if run.is_embedding_set
        else "One or two runs tested on the same samples; each query then shows the neighbours in every run",
    )
    return wanted


def together(shown: ShownRun, others: Sequence[str]) -> tuple[list[ShownRun], Comparison] | None:
    """Return the comparable runs and their comparison on common queries; if there are none, warn and return None."""
    runs = [shown]
    for name in others:
        try:
            other = RunStore().open(name)
            source = other.embeddings()
            if source is None:
                raise Incomparable("it has not been evaluated")
            searched = own = learned(source)
            if shown.run.is_embedding_set and other.is_embedding_set:
                searched = matched(other, shown.run, own, shown.test, ("it", "this set"))
            else:
                specs = (shown.run.spec, other.spec)
                refuse_other_samples(shown.test, searched, partial(map, thumbnails.dataset, specs))
            compare([shown.test, searched])
        except (Incomparable, Unreadable, DataError, RunError) as error:
            st.warning("A run cannot be compared with this one and is left out:", icon=":material/rule:")
            st.text(words.plain(f"{name}: {error}"))
            continue
        over = weights_view.addresses(other) if weights_view.shown() else shown.over
        runs.append(ShownRun(other, source, searched, shown.name, over, own.indices))
    if len(runs) == 1:
        return None
    key = tuple((each.run.id, each.tag) for each in runs)
    return runs, _compare(key, tuple(each.test for each in runs))


def summary(runs: Sequence[ShownRun], pair: Comparison) -> None:
    """Show the scores of each run, and compare run A with each other run.

    The comparison counts the queries for which the nearest neighbour is correct in only one of the two runs, or in
    neither.
    """
    labelled = runs[0].test.has_labels
    lines = ""
    for mark, each in zip(MARKS, runs, strict=False):
        lines += f"<tr><th>{mark}</th><td><bdi>{escape(titles.label(each.run))}</bdi></td>"
        if labelled:  # otherwise scores are undefined
            lines += f"<td>R@1 <b>{percent(each.test.recall_at_1)}</b></td>"
            lines += f"<td>MAP@R <b>{percent(each.test.map_at_r)}</b></td>"
        lines += "</tr>"
    st.html(f'{STYLE}<table class="beside">{lines}</table>')
    if not labelled:
        return
    for second in range(1, len(runs)):
        _, a, b, none = pair.counts(0, second)
        st.caption(
            f"Nearest neighbour right in A only: {a:,} queries, in {MARKS[second]} only: {b:,}, in neither: {none:,}. "
            f"McNemar p = {pair.p_value(0, second):.2g}.",
            help="Exact McNemar test: probability of a split at least this uneven if both embeddings are equally good "
            "on these queries. Another seed may change the result by more.",
        )


def contests(count: int) -> dict[str, tuple[int, int] | None]:
    """Map the label of each filter "where X beats Y" to (index of X, index of Y), and that for all queries to None."""
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    return {EVERY: None} | {f"where {MARKS[i]} beats {MARKS[j]}": (i, j) for i, j in pairs}


def contested(together: Comparison, pair: tuple[int, int], allowed: Ints) -> Ints:
    """Return columns (m,) of the comparison in which the first run of `pair` beats the second.

    Args:
        allowed: Rows of the selected run to which the queries are restricted.
    """
    wins = together.wins(*pair)
    return wins[np.isin(together.rows[0, wins], allowed)]


@st.cache_resource(max_entries=4, show_spinner=False)
def _compare(key: tuple[tuple[str, str], ...], _learned: tuple[TestNeighbours, ...]) -> Comparison:
    return compare(_learned)


def _write() -> None:
    chosen = st.session_state[KEY]
    if chosen:
        st.query_params[PARAMETER] = ",".join(chosen)
    else:
        st.query_params.pop(PARAMETER, None)
