"""Neighbours page: test samples as queries, each with its nearest neighbours in the embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import streamlit as st

from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.runs import Run
from pages.inspection.neighbours import duplicates as duplicates_view
from pages.inspection.neighbours import queries as queries_view
from pages.inspection.neighbours import runs_beside as runs_beside_view
from pages.inspection.neighbours import upload as upload_view
from pages.inspection.neighbours import weights as weights_view
from pages.shared.server import thumbnails
from pages.shared.widgets import export_menu, menu, neighbour_grid, run_picker, sampled, selection
from pages.shared.widgets.score_context import beside
from pages.shared.widgets.shown_run import ShownRun, headed
from pages.shared.words import titles
from pages.shared.words.labels import SCORES
from pages.shared.words.numbers import percent

CLICK = "gallery_click"
QUERIES, PAIRS, SUSPECTS, OWN = "Queries", "Near-duplicates", "Suspicious labels", "Own image"
OWN_BEFORE = "Own picture"  # former name of OWN, still used in old links
ALL_CLASSES = -1  # no class has this label


def page() -> None:
    shown = headed(
        "neighbours",
        "Neighbours",
        "Each row shows a test sample (the query) and its nearest neighbours in the embedding: :green[**✓**] same "
        "class, :orange[**✗**] another class. Click an image to make it the query.",
        "Each row shows a sample (the query) and its nearest neighbours in the embedding. Click an image to make it "
        "the query.",
    )
    if shown is None:
        return
    if st.query_params.get("view") == OWN_BEFORE:
        st.query_params["view"] = OWN
        st.rerun()  # the view selector reads the URL only at the start of a script run
    menu.row("neighbours", st.container(horizontal=True), selection.address(shown.run))
    with st.container(horizontal=True):
        label = chosen_class(shown) if shown.test.has_labels else None
        others = runs_beside_view.choose(shown.run)
    browse(shown, label, others)


def chosen_class(shown: ShownRun) -> int | None:
    """Show a class box that follows ?class=; return the chosen label, or None for all classes.

    Must not be in a fragment, because then thousands of class names would be sent whenever the user turns the page.
    """
    classes = np.unique(shown.test.labels).tolist()
    wanted = st.query_params.get("class", "")
    label = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else ALL_CLASSES
    # the URL takes precedence over the select box
    st.session_state["class"] = label if label in classes else ALL_CLASSES
    chosen: int = st.selectbox(
        "Class",
        [ALL_CLASSES, *classes],
        format_func=lambda c: "all classes" if c == ALL_CLASSES else shown.name(c),
        key="class",
        help="Show only queries of this class; neighbours come from all classes",
        width=220,
        on_change=_write_class,
    )
    return None if chosen == ALL_CLASSES else chosen


def _write_class() -> None:
    label = st.session_state["class"]
    if label == ALL_CLASSES:
        st.query_params.pop("class", None)
    else:
        st.query_params["class"] = str(label)
    st.query_params.pop("query", None)


@st.fragment
def browse(shown: ShownRun, label: int | None, others: Sequence[str]) -> None:
    """Show the scores and the chosen view, and handle clicks and keyboard shortcuts.

    Args:
        label: Class to show; None for all.
        others: Ids of the runs to compare.
    """
    run, learned = shown.run, shown.test
    if not run_picker.present(run):
        return
    failures, about = int(learned.failures.sum()), sampled.about(learned)
    samples = f"{len(learned.labels):,} {'samples' if run.is_embedding_set else 'test samples'}"
    if not learned.has_labels:
        st.markdown(f"{samples} without labels; distances are those of the imported vectors.")
    else:
        st.markdown(
            f"**R@1 {about}{percent(learned.recall_at_1)}** · **MAP@R {about}{percent(learned.map_at_r)}** · {samples} "
            f"of {len(np.unique(learned.labels)):,} classes · {failures:,} failures (nearest neighbour wrong)",
            help=f"{SCORES}\n\n{beside(run).strip()}",
        )
    sampled.note(run, learned)
    selected = selection.chosen(run)
    if selected is not None:
        selection.bar(run, selected, here="neighbours")
    with st.container(horizontal=True, vertical_alignment="center"):
        view = st.segmented_control(
            "View",
            _views(shown),
            default=QUERIES,
            required=True,
            key="view",
            bind="query-params",
            label_visibility="collapsed",
            on_change=queries_view.forget_query,
        )
        export_menu.offer(run, selected)
        weights_view.toggle(run)
        listener = st.container(width="content")
    shown = replace(shown, over=weights_view.overlay(run))
    keys, first, ahead = ["forces", "map"], -1, list[int]()
    row = _asked(run, learned)
    if view == PAIRS and row is None:
        first = duplicates_view.near_duplicates(shown, selected, label)
        keys.append("pages")
    elif view == SUSPECTS and row is None:
        first = duplicates_view.suspects(shown, selected, label)
        keys.append("pages")
    elif view == OWN and row is None:
        first = upload_view.show(shown)
    else:
        together = runs_beside_view.together(shown, others) if others else None
        runs = [shown] if together is None else together[0]
        if together is not None:
            runs_beside_view.summary(*together)
        if row is not None:
            queries_view.one(runs, row, "All queries" if view == QUERIES else "Back")
            keys.append("back")
            first = int(learned.indices[row])
        else:
            first, ahead = queries_view.many(runs, None if together is None else together[1], selected, label)
            keys.append("pages")
    with listener:
        asked = neighbour_grid.listen(
            CLICK,
            keys=keys,
            first=first,
            ahead=(thumbnails.address(run), ahead),
            on_query_change=_click,
            on_turn_change=_turn,
            on_back_change=queries_view.forget_query,
        )
    _follow(run, asked)


def _views(shown: ShownRun) -> list[str]:
    """Return the views that this run can show: labels can be doubted only if there are labels, and an image of the
    user can be embedded only by a network.
    """
    views = [QUERIES, PAIRS]
    views += [SUSPECTS] if shown.test.has_labels else []
    return views + ([] if shown.run.is_embedding_set else [OWN])


def _asked(run: Run, neighbours: TestNeighbours) -> int | None:
    """Return the row of the query in ?query=, or None; warn if the run has no such sample."""
    query = st.query_params.get("query")
    row = None if query is None else neighbours.row(query)
    if query is not None and row is None:
        st.warning(
            f"The query in the link is not in the {titles.split_of(run)}. Showing all queries.",
            icon=":material/link_off:",
        )
    return row


def _follow(run: Run, asked: dict[str, Any]) -> None:
    """Open the page that a keyboard shortcut or a link requested."""
    if isinstance(asked["map"], int):
        menu.go("explore", {"run": run.id, "point": str(asked["map"])})
    if isinstance(asked["forces"], str):
        given = dict(parse_qsl(asked["forces"][:200]))
        kept = {key: value for key, value in given.items() if key in ("run", "query", "right", "wrong")}
        menu.go("failures", kept)


def _click() -> None:
    st.query_params["query"] = str(st.session_state[CLICK]["query"])


def _turn() -> None:
    step = st.session_state[CLICK]["turn"]
    if step in (1, -1):
        queries_view.turn(step)


page()
