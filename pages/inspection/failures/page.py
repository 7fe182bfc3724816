"""Failures page: a query with a correct and an incorrect neighbour, and its ranking after one step of each loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.inspection.failure.one_step import RetrievalFailure, failures, neighbours
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage.runs import Run
from dmlcore.typing import Ints
from pages.inspection.failures import images, service
from pages.inspection.failures import influence as influence_view
from pages.inspection.failures.address import CLASS, OF, OF_POINTS, OF_TRIPLET, followed
from pages.inspection.failures.state import RealScene, home
from pages.inspection.failures.true_step import panel as true_step_view
from pages.shared.server import thumbnails
from pages.shared.widgets import menu, selection
from pages.shared.widgets.component import component
from pages.shared.widgets.live_component import Presentation, mount, opened
from pages.shared.widgets.shown_run import ShownRun, headed, refuse_unlabelled
from pages.shared.words.labels import SCORES
from pages.shared.words.numbers import percent

STRIP = 9  # number of nearest neighbours in each strip
# parts of the Fields page that are hidden because they do not apply to a triplet of embeddings
HIDDEN = ("situations", "figures", "take", "margins")
# widget keys of the image strips, the force field and the class box
CLICK, PLANE, BOX = "failure_click", "failure", "failure_class"
LECTURE = Presentation(
    "Failures",
    "A failed query A, a positive P and a negative N: the effect of one step of {loss}.",
    ("steps",),
    (
        "A is a test sample from a class that the network never trained on. N, of another class, is nearer to A "
        "than P.",
        "The figure shows the plane through the three embeddings, so distances equal those in the embedding space.",
        "The table shows the ranks after one step of equal length with each loss, moving only these three embeddings.",
        "✓ better, ✗ worse; small differences are ties. Choose a loss to see its forces, or drag a point.",
        "A training step changes weights and thus every embedding, so the true step on the page decides.",
    ),
)
IMPORTED_LECTURE = replace(
    LECTURE, notes=("A is a query. N, of another class, is nearer to A than P.", *LECTURE.notes[1:-1])
)


def page() -> None:
    shown = headed(
        "failures",
        "Failures",
        "See why a query **A** is nearer to a wrong neighbour **N** than to a right one **P**, and which loss would "
        "help.",
    )
    if shown is not None and not refuse_unlabelled(shown, "failures"):
        browse(shown, st.container(horizontal=True, vertical_alignment="center"))


def browse(shown: ShownRun, bar: DeltaGenerator) -> None:
    """Show the failure given by the URL; without one, the worst failure of the run.

    Args:
        bar: Container for the controls that choose the failure.
    """
    run, searched = shown.run, shown.test
    order = failures(searched)
    if not len(order):
        st.info(
            "No query of this run has another sample of its class, so there are no failures to show.",
            icon=":material/info:",
        )
        return
    chosen = selection.chosen(run)
    if chosen is not None:
        selection.bar(run, chosen, here="failures")
        within = order[np.isin(searched.indices[order], chosen.indices)]
        if len(within):
            order = within
        else:
            st.caption("There are no failures among the selected samples. Showing all failures.")
    order, label = _of_class(shown, order, bar)
    component("inspection/failures/strips")(key=CLICK, data={}, on_chosen_change=_follow_click)
    query = _query(searched, order, label)
    rights, wrongs = (neighbours(searched, query, right=right) for right in (True, False))
    if not len(rights) or not len(wrongs):
        st.info("This query lacks another sample of its class, or a sample of another class.", icon=":material/info:")
        _walk(run, searched, order, query, bar)
        return
    right = _chosen(searched, "right", rights, int(rights[0]))
    wrong = _chosen(searched, "wrong", wrongs, int(wrongs[0]))
    case = RetrievalFailure(searched, query, right, wrong, on_sphere=run.spec.model.normalize)
    samples = [int(searched.indices[row]) for row in (query, right, wrong)]
    _walk(run, searched, order, query, bar)
    st.html(_images(shown, case, rights, wrongs))
    triplet: dict[str, Any] = {"run": run.id} | dict(zip(OF, samples, strict=True))
    _steps(run, triplet, case, [f"{thumbnails.address(run)}{index}" for index in samples])
    if not run.is_embedding_set:
        influence_view.show(run, triplet)


@st.fragment
def _steps(run: Run, triplet: dict[str, Any], case: RetrievalFailure, addresses: list[str]) -> None:
    """Show the force field of a triplet and the effect of a true training step on it.

    This is a fragment, so that the choice of another loss does not rerun the rest of the page.
    """
    _canvas(run, triplet, case, addresses)
    if not run.is_embedding_set:  # which has no network that could take a training step
        true_step_view.show(run, triplet, case, home(case.triplet, run.spec_as_trained()))


def _of_class(shown: ShownRun, order: Ints, bar: DeltaGenerator) -> tuple[Ints, int | None]:
    """Let the user choose a class whose failures are shown.

    Returns:
        The rows of the failures in the chosen class, and its label; `order` and None if no class is chosen.
    """
    labels = shown.test.labels[order]
    count = dict(zip(*(each.tolist() for each in np.unique(labels, return_counts=True)), strict=True))
    wanted = st.query_params.get(CLASS, "")
    label = next((each for each in count if str(each) == wanted), None)
    if wanted and label is None:
        st.warning("The class in the link has no failures. Showing all failures.", icon=":material/link_off:")
    st.session_state[BOX] = label  # the URL takes precedence over the select box
    names = {each: f"{shown.name(each)} ({number:,})" for each, number in count.items()}
    bar.selectbox(
        "Class of the query",
        sorted(names, key=lambda each: names[each].casefold()),
        index=None,
        placeholder="All classes",
        key=BOX,
        format_func=names.__getitem__,
        on_change=_choose_class,
        label_visibility="collapsed",
        width=250,
    )
    return (order if label is None else order[labels == label]), label


def _query(neighbours: TestNeighbours, order: Ints, label: int | None) -> int:
    """Return the row of the query in the URL; if it is missing, invalid or of another class, the first of `order`."""
    wanted = st.query_params.get("query")
    if wanted is None:
        return int(order[0])
    row = neighbours.row(wanted)
    if row is None or neighbours.is_gallery[row]:
        st.warning(
            "The query in the link is not a query of this run. Showing the worst failure.", icon=":material/link_off:"
        )
        return int(order[0])
    return row if label is None or neighbours.labels[row] == label else int(order[0])


def _chosen(neighbours: TestNeighbours, role: str, rows: Ints, default: int) -> int:
    """Return the row of the "right" or "wrong" neighbour in the URL if it is among `rows`, else `default`."""
    wanted = st.query_params.get(role)
    row = None if wanted is None else neighbours.row(wanted)
    if row is not None and row in rows:
        return row
    if wanted is not None:
        st.warning(
            f"The {role} neighbour in the link does not belong to this query. Showing another one.",
            icon=":material/link_off:",
        )
    return default


def _walk(run: Run, neighbours: TestNeighbours, order: Ints, query: int, bar: DeltaGenerator) -> None:
    """Show buttons for the previous and next failure, links to other pages, and the query's position in `order`."""
    at = np.flatnonzero(order == query)
    place = int(at[0]) if len(at) else -1
    for label, icon, to in (
        ("Previous failure", ":material/arrow_back:", place - 1),
        ("Next failure", ":material/arrow_forward:", place + 1),
    ):
        there = int(neighbours.indices[order[to]]) if 0 <= to < len(order) else None
        bar.button(label, icon=icon, disabled=there is None, on_click=_go, args=(there,), key=label)
    index = str(int(neighbours.indices[query]))
    for page, label, key in (("neighbours", "Neighbours", "query"), ("explore", "On the map", "point")):
        menu.link(page, label, selection.address(run) | {key: index}, into=bar)
    what = "failure" if neighbours.failures.any() else "query (no failures: every nearest neighbour is right)"
    position = (
        (f"{what} {place + 1:,} of {len(order):,}, worst first")
        if len(at)
        else "no failure: the nearest neighbour is right"
    )
    bar.markdown(f"Sample {index} · AP@R {percent(neighbours.average_precision[query])} · {position}", help=SCORES)


def _images(shown: ShownRun, case: RetrievalFailure, rights: Ints, wrongs: Ints) -> str:
    run, indices = shown.run, shown.test.indices
    ranks = {case.right: case.before.right, case.wrong: case.before.wrong}
    three = [
        images.Sample(int(indices[row]), shown.class_of(row), ranks.get(row))
        for row in (case.query, case.right, case.wrong)
    ]

    def tiles(rows: Ints, words: str) -> list[tuple[int, str]]:
        return [(int(indices[row]), f"{words}: class {shown.class_of(row)}") for row in rows]

    hardest = rights[max(STRIP, len(rights) - 3) :]
    others = [
        images.Others(
            "right",
            "Other right neighbours, nearest to farthest",
            tiles(rights[:STRIP], "right"),
            tiles(hardest, "right, far"),
        ),
        images.Others("wrong", "Other wrong neighbours, nearest first", tiles(wrongs[:STRIP], "wrong"), []),
    ]
    distances = {edge: float(np.linalg.norm(case.points[0] - case.points[i])) for edge, i in (("ap", 1), ("an", 2))}
    now = {"query": three[0].index, "right": three[1].index, "wrong": three[2].index}
    return images.html(
        three,
        distances,
        others,
        thumbnails.address(run),
        lambda role, index: images.address(run.id, **(now | {role: index})),
    )


def _canvas(run: Run, triplet: dict[str, Any], case: RetrievalFailure, addresses: list[str]) -> None:
    """Mount the force field of the triplet with its panels and tables.

    Args:
        triplet: ID of the run, and the data set indices of the query and its correct and incorrect neighbour.
        addresses: URLs of the three images.
    """
    query = st.query_params.to_dict()
    at_home = home(case.triplet, run.spec_as_trained())
    scene = opened(RealScene, RealScene.at(at_home))
    rate, way = service.asked(query)
    circle = (1 - case.triplet.height**2) ** 0.5 / at_home.unit if case.on_sphere and case.triplet.height < 1 else None
    mount(
        "inspection/failures",
        scene,
        service.answer,
        key=PLANE,
        name="scene",
        hide=HIDDEN,
        home=at_home.to_json(),
        circle=circle,
        present=IMPORTED_LECTURE if run.is_embedding_set else LECTURE,
        of=triplet,
        images=addresses,
        rate=rate,
        by=way,
        rates=service.RATES,
        last_word="" if run.is_embedding_set else true_step_view.last_word(run, triplet),
        trained=not run.is_embedding_set,
        query=urlencode(service.link(triplet, scene, rate, way)),
        idle=False,
        heard={"link": _follow_plane},
    )


def _follow_plane() -> None:
    """Merge the URL query string that the force-field component reported into the query parameters.

    The component changes the URL itself, which Streamlit does not notice.
    """
    written = (st.session_state[PLANE].get("link") or {}).get("query")
    st.query_params.from_dict(followed(st.query_params.to_dict(), written))


def _go(index: int | None) -> None:
    if index is not None:
        _rewrite(OF_TRIPLET, query=str(index))


def _choose_class() -> None:
    label = st.session_state[BOX]
    _rewrite((*OF, *OF_TRIPLET, CLASS), **({} if label is None else {CLASS: str(label)}))


def _follow_click() -> None:
    chosen = st.session_state[CLICK]["chosen"]
    if isinstance(chosen, dict) and chosen.get("role") in ("right", "wrong"):
        _rewrite(OF_POINTS, **{chosen["role"]: str(chosen["index"])})


def _rewrite(without: Iterable[str], **put: str) -> None:
    """Remove and set query parameters in one update, so that the browser's Back button undoes them together."""
    st.query_params.from_dict({k: v for k, v in st.query_params.to_dict().items() if k not in set(without)} | put)


page()
