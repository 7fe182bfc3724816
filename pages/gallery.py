"""Gallery: what a network takes for similar. Test samples as queries, each with its nearest neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import streamlit as st

from dmlcore.inspection.neighbours import Learned
from dmlcore.storage.runs import Run, RunStore
from pages._ui import (
    gallery_class,
    gallery_pairs,
    gallery_queries,
    gallery_runs,
    gallery_upload,
    gallery_weights,
    grid,
    menu,
    run_picker,
    selection,
    takeaway,
    thumbnails,
)
from pages._ui.evaluated import evaluated
from pages._ui.gallery_rows import Shown
from pages._ui.learned import naming
from pages._ui.numbers import percent
from pages._ui.results import beside

CLICK = "gallery_click"
QUERIES, PAIRS, SUSPECTS, OWN = (
    "Queries",
    "Near-duplicates",
    "Suspicious labels",
    "Own picture",
)


def page() -> None:
    st.title("Nearest neighbours", anchor=False)
    st.markdown(
        "Each row is a test sample, the query, and the test samples whose embeddings lie nearest to it: "
        ":green[**✓**] of the same class, :orange[**✗**] of another. Click a picture to make it the query."
    )
    boxes = st.container(horizontal=True)
    run = run_picker.pick(RunStore(), into=boxes, width=520)
    if run is None:
        return
    known = evaluated(run, "neighbours")
    if known is None:
        return
    _, found = known
    name = naming(run)
    with boxes:
        label = gallery_class.choose(found, name)
        others = gallery_runs.choose(run)
    browse(run, found, name, label, others)


@st.fragment
def browse(run: Run, found: Learned, name: Callable[[int], str], label: int | None, others: Sequence[str]) -> None:
    """The summary, then one of the views; clicks and keys. label: the class it is about; others: ids of runs."""
    if not run_picker.present(run):
        return
    failures = int(found.failures.sum())
    st.markdown(
        f"**R@1 {percent(found.recall_at_1)}** · **MAP@R {percent(found.map_at_r)}** · {len(found.labels):,} test "
        f"samples of {len(np.unique(found.labels)):,} classes · {failures:,} failures (nearest neighbour wrong)."
        f"{beside(run)}"
    )
    selected = selection.chosen(run)
    if selected is not None:
        selection.bar(run, selected, here="gallery")
    with st.container(horizontal=True, vertical_alignment="center"):
        view = st.segmented_control(
            "View",
            [QUERIES, PAIRS, SUSPECTS, OWN],
            default=QUERIES,
            required=True,
            key="view",
            bind="query-params",
            label_visibility="collapsed",
            on_change=gallery_queries.forget_query,
        )
        takeaway.offer(run, selected)
        listener = st.container(width="content")
    shown = Shown(run, found, name, gallery_weights.overlay(run))
    keys, first, ahead = ["forces", "map"], -1, list[int]()
    row = _asked(found)
    if view == PAIRS and row is None:
        first = gallery_pairs.near_duplicates(shown, selected, label)
        keys.append("pages")
    elif view == SUSPECTS and row is None:
        first = gallery_pairs.suspects(shown, selected, label)
        keys.append("pages")
    elif view == OWN and row is None:
        first = gallery_upload.show(shown)
    else:
        both = gallery_runs.together(shown, others) if others else None
        runs = [shown] if both is None else both[0]
        if both is not None:
            gallery_runs.summary(*both)
        if row is not None:
            gallery_queries.one(runs, row, "All queries" if view == QUERIES else "Back")
            keys.append("back")
            first = int(found.indices[row])
        else:
            first, ahead = gallery_queries.many(runs, None if both is None else both[1], selected, label)
            keys.append("pages")
    with listener:
        asked = grid.listen(
            CLICK,
            keys=keys,
            first=first,
            ahead=(thumbnails.address(run), ahead),
            on_query_change=_click,
            on_turn_change=_turn,
            on_back_change=_back,
        )
    _follow(run, asked)


def _asked(found: Learned) -> int | None:
    """The row of ?query=; says so where there is none."""
    query = st.query_params.get("query")
    row = None if query is None else found.row(query)
    if query is not None and row is None:
        st.warning(
            "The query of the link is not in the test part of this run; here are all.", icon=":material/link_off:"
        )
    return row


def _follow(run: Run, asked: dict[str, Any]) -> None:
    """To another page, as a key or a link asked."""
    if isinstance(asked["map"], int):
        menu.go("maps", {"run": run.id, "point": str(asked["map"])})
    if isinstance(asked["forces"], str):
        given = dict(parse_qsl(asked["forces"][:200]))
        kept = {key: value for key, value in given.items() if key in ("run", "query", "right", "wrong")}
        menu.go("failure", kept)


def _click() -> None:
    st.query_params["query"] = str(st.session_state[CLICK]["query"])


def _turn() -> None:
    step = st.session_state[CLICK]["turn"]
    if step in (1, -1):
        gallery_queries.turn(step)


def _back() -> None:
    gallery_queries.forget_query()


page()
