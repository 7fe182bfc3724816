"""Explore: a 2-D map of the test embeddings next to their images, with filters, selection, tags and replay over
training.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from dmlcore.inspection.selections import Selection
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run, scores
from pages.inspection.explore import canvas as canvas_view
from pages.inspection.explore import keeping as keeping_view
from pages.inspection.explore import making as making_view
from pages.inspection.explore import service as map_service
from pages.inspection.explore.service import MapData
from pages.shared.widgets import export_menu, job_button, menu, run_picker, selection
from pages.shared.widgets.results import beside
from pages.shared.widgets.test_neighbours import outdated
from pages.shared.words import sentences as words
from pages.shared.words.numbers import percent

TRUST = (
    "1 where all neighbours on the map are neighbours in the embedding too; each that is not costs by how far down "
    "the true list it is. Low: do not believe groups that you see."
)
KEPT = (
    "Of the 15 nearest neighbours in the embedding, the share that is still among the 15 nearest on the map. The rest "
    "was torn apart to fit a plane: judge single neighbours under Neighbours, never here."
)
MEANING = {
    "tsne": "t-SNE keeps neighbours together; how large, how dense and how far apart groups are means nothing.",
    "umap": "UMAP keeps neighbours together; how far apart groups lie and how dense they are means little.",
    "pca": "PCA shows the two directions of largest spread; whatever differs in the others lies on top of each other.",
}

# Views of Neighbours by name; the first is its default view.
VIEWS = (
    ("", "Neighbours of every query", "grid_view"),
    ("Near-duplicates", "Near-duplicates", "filter_2"),
    ("Suspicious labels", "Suspicious labels", "rule"),
    ("Own picture", "Your own picture", "upload"),
)
MOST_ROWS = 1000  # key of the table of selected classes


def page() -> None:
    run = run_picker.head(
        "Explore",
        "Samples that the network finds similar lie together. Draw around some, or filter: the images beside the map "
        "follow. Click one for its neighbours and its history during training.",
    )
    if run is None:
        return
    boxes = st.container(horizontal=True, vertical_alignment="center")
    menu.row("explore", boxes, selection.address(run))
    source = run.embeddings()
    if source is None:
        st.markdown("This run has not been evaluated yet: its map needs the embeddings of the test split.")
        job_button.offer(run, "evaluate")
        return
    if outdated(run, source):
        st.caption("The run was trained on since its last evaluation.")
        job_button.offer(run, "evaluate")
    settings = making_view.choose(run, boxes)
    if settings is None:
        making_view.missing(run, source)
        return
    busy = making_view.progress(run)
    training = making_view.over_training(run, settings, boxes)
    try:
        data = (map_service.over_training if training else map_service.of_map)(run, settings)
        if data is not None:
            canvas(data, settings.method)
    except (Unreadable, ValueError) as error:
        st.error(words.plain(error), icon=":material/broken_image:")
        making_view.form(run)
        return
    if not busy:
        with st.expander("Another map of these embeddings", icon=":material/tune:"):
            making_view.form(run)
        with st.expander("The map over training", icon=":material/animation:"):
            making_view.offer_training(run, settings)


@st.fragment
def canvas(data: MapData, method: str) -> None:
    """Show the map and its selection. A fragment: a lasso reruns only this function."""
    run = data.run
    if not run_picker.present(run):
        return
    if keeping_view.other_map():
        st.rerun()
    chosen = selection.chosen(run)
    marks = []
    for name in ("point", "query"):
        wanted = st.query_params.get(name, "")
        row = data.row(wanted)
        if row is not None:
            marks.append(int(data.sheet.indices[row]))
        elif wanted:
            st.warning("The point of the link is not in the test split of this run.", icon=":material/link_off:")
    canvas_view.show(data, marks=marks, chosen=chosen, own=canvas_view.own(data))
    selected_classes(data, chosen)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(caption(run, data, method), width="stretch", help=trust(data))
        export_menu.offer(run, chosen)
    further(run, chosen)


def further(run: Run, chosen: Selection | None) -> None:
    """Show links to further views of the same samples on Neighbours."""
    carried = {"run": run.id} | ({selection.PARAMETER: chosen.id} if chosen else {})
    with st.container(horizontal=True):
        for view, label, icon in VIEWS:
            menu.link("neighbours", label, carried | ({"view": view} if view else {}), icon=icon)


def selected_classes(data: MapData, chosen: Selection | None) -> None:
    """Show the bar of the selection with its class counts, or how to make a selection."""
    if chosen is None:
        st.caption(
            "Select samples: choose Lasso above the map and draw around them (or hold Shift and drag). The other pages "
            "of Inspection then show them, too."
        )
        return
    selection.bar(data.run, chosen, here="explore")
    rows = np.flatnonzero(np.isin(data.sheet.indices, chosen.indices))
    if not len(rows):
        st.caption("None of the selected samples is on this map.")
        return
    number, counts = np.unique(data.sheet.group[rows], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_ROWS]
    names = map_service.names(data.run, data.sheet)
    st.dataframe(
        {
            "class": [names[k] for k in number[order]],
            "selected": counts[order],
            "of": data.sheet.counts[number[order]],
            "share of the class": counts[order] / data.sheet.counts[number[order]],
        },
        column_config={
            "class": st.column_config.TextColumn(width="medium"),
            "share of the class": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1),
        },
        hide_index=True,
        height="content" if len(order) <= 10 else 390,
        width=620,
        key="selected classes",
    )
    if len(number) > MOST_ROWS:
        st.caption(f"The {MOST_ROWS:,} classes with most selected samples, of {len(number):,}.")


def caption(run: Run, data: MapData, method: str) -> str:
    """Explain what the map shows and what it cannot show."""
    row = scores(run.metrics()[0]).get("trained", {})
    score = row.get("map_at_r") if row.get("weights") == data.source.stem else None
    points = f"{len(data.sheet.indices):,} test embeddings of {len(data.sheet.labels):,} classes"
    tested = (
        f" Test MAP@R {percent(score)}, measured on the embeddings themselves, not on this plane.{beside(run)}"
        if score
        else ""
    )
    frames = (
        f"{data.words} Colours by neighbours are those of the evaluated weights at every step."
        if data.steps
        else f"{data.words} of {points}.{tested}"
    )
    measured = data.quality
    believed = (
        f" Trustworthiness {measured.trustworthiness:.3f}, kept neighbours {percent(measured.kept_neighbours)}."
        if measured
        else ""
    )
    if measured and measured.doubt:
        believed += f" {measured.doubt}"
    if measured and measured.among is not None:
        believed += " Where more points are in sight than can be told apart, each place shows its share of them."
    return (
        f"{frames} {MEANING[method]}{believed} A name stands at the most central sample of its class. Zoom with the "
        "wheel or + and −; drag to move; arrow keys go from point to point, Enter opens one, Space selects it, L draws "
        "a lasso, M moves, T fills the window with the map for a lecture."
    )


def trust(data: MapData) -> str | None:
    """Show how trustworthy the map is."""
    measured = data.quality
    if measured is None:
        return None
    sampled = f" Measured on {measured.sampled:,} of the points." if measured.sampled < measured.points else ""
    if measured.among is not None:
        sampled = (
            f" Measured on {measured.sampled:,} points among {measured.among:,} of those that were placed on the map "
            "of others."
        )
    return f"**Trustworthiness**: {TRUST}\n\n**Kept neighbours**: {KEPT}{sampled}"


page()
