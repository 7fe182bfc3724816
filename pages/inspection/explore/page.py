"""Explore page: a 2-D map of the test embeddings with images, filters, selection, tags, and a replay of training."""

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
from pages.shared.widgets import export_menu, job_button, menu, own_embeddings, run_picker, selection
from pages.shared.widgets.score_context import beside
from pages.shared.widgets.test_neighbours import learned, outdated
from pages.shared.words import sentences as words
from pages.shared.words import titles
from pages.shared.words.numbers import percent

TRUST = (
    "1 if all neighbours on the map are neighbours in the embedding, too. A false neighbour costs more the lower its "
    "true rank. If the value is low, do not trust groups on the map."
)
KEPT = (
    "Share of the 15 nearest neighbours in the embedding that are among the 15 nearest on the map. Use the Neighbours "
    "page to judge single neighbours."
)
KEYS = (
    "**Keys**: + and − zoom, arrow keys go from point to point, Enter opens a point, Space selects it, L draws a "
    "lasso, M moves the map, T shows it in full screen for a lecture."
)
MEANING = {
    "tsne": "t-SNE keeps neighbours together; the size, density and distance of groups mean nothing.",
    "umap": "UMAP keeps neighbours together; the density and distance of groups mean little.",
    "pca": "PCA shows the two directions of largest variance; samples that differ only in other directions overlap.",
}

# (URL value, label, icon) of each view on the Neighbours page; the first is the default
VIEWS = (
    ("", "Neighbours of every query", "grid_view"),
    ("Near-duplicates", "Near-duplicates", "filter_2"),
    ("Suspicious labels", "Suspicious labels", "rule"),
    ("Own image", "Your own image", "upload"),
)
MOST_ROWS = 1000  # maximum number of classes listed for a selection


def page() -> None:
    run = run_picker.head(
        "Explore",
        "Similar samples are close together. Select or filter samples to see their images next to the map. Click a "
        "sample to see its neighbours and its history during training.",
        "Similar samples are close together. Select or filter samples to see their images next to the map. Click a "
        "sample to see its neighbours and its metadata.",
    )
    if run is None:
        return
    if run.is_example:
        own_embeddings.show_link()
    boxes = st.container(horizontal=True, vertical_alignment="center")
    menu.row("explore", boxes, selection.address(run))
    if not run.is_example:
        menu.link("bring_your_own", own_embeddings.LABEL, into=boxes)
    source = run.embeddings()
    if source is None:
        if not run.is_logged:
            st.markdown("This run has not been evaluated yet. Its map needs the embeddings of the test split.")
        job_button.offer(run, "evaluate")
        return
    if outdated(run, source):
        st.caption("This run was trained further after its last evaluation.")
        job_button.offer(run, "evaluate")
    settings = making_view.choose(run, boxes)
    if settings is None:
        making_view.missing(run, source)
        return
    busy = making_view.progress(run)
    training = making_view.over_training(run, settings, boxes)
    try:
        data = map_service.of_map(run, settings, training=training)
        if data is not None:
            canvas(data, settings.method)
    except (Unreadable, ValueError) as error:
        st.error(words.plain(error), icon=":material/broken_image:")
        making_view.form(run)
        return
    if not busy:
        with st.expander("Another map of these embeddings", icon=":material/tune:"):
            making_view.form(run)
        if not run.is_embedding_set:
            with st.expander("Map during training", icon=":material/animation:"):
                making_view.offer_training(run, settings)


@st.fragment
def canvas(data: MapData, method: str) -> None:
    """Show the map and its selection. This is a fragment, so that a lasso selection does not rerun the whole page."""
    run = data.run
    if not run_picker.present(run):
        return
    if keeping_view.other_map():
        st.rerun()
    chosen = selection.chosen(run)
    marks, known = [], learned(data.source)
    for name in ("point", "query"):
        wanted = st.query_params.get(name, "")
        row = known.row(wanted)
        if row is not None:
            marks.append(int(data.sheet.indices[row]))
        elif wanted:
            st.warning(f"The point in the link is not in the {titles.split_of(run)}.", icon=":material/link_off:")
    canvas_view.show(data, marks=marks, chosen=chosen, own=canvas_view.own(data))
    selected_classes(data, chosen)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(caption(run, data, method), width="stretch", help=explanation(run, data))
        export_menu.offer(run, chosen)
    further(run, chosen, labelled=data.has_labels)


def further(run: Run, chosen: Selection | None, *, labelled: bool) -> None:
    """Show links to the views of the Neighbours page that the run has; the links pass on the selection."""
    carried = {"run": run.id} | ({selection.PARAMETER: chosen.id} if chosen else {})
    with st.container(horizontal=True):
        for view, label, icon in VIEWS:
            if (view == "Suspicious labels" and not labelled) or (view == "Own image" and run.is_embedding_set):
                continue
            menu.link("neighbours", label, carried | ({"view": view} if view else {}), icon=icon)


def selected_classes(data: MapData, chosen: Selection | None) -> None:
    """Show the selection with its number of samples per class; without a selection, explain how to select."""
    if chosen is None:
        st.caption(
            "Zoom in with the wheel or + to turn points into images. To select samples, choose Lasso and draw around "
            "them, or hold Shift and drag. The other Inspection pages show your selection, too."
        )
        return
    selection.bar(data.run, chosen, here="explore")
    rows = np.flatnonzero(np.isin(data.sheet.indices, chosen.indices))
    if not len(rows):
        st.caption("None of the selected samples is on this map.")
        return
    if not data.has_labels:
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
        st.caption(f"Showing the {MOST_ROWS:,} of {len(number):,} classes with the most selected samples.")


def caption(run: Run, data: MapData, method: str) -> str:
    """Return the caption of the map, which states its data, what distances mean, and the quality of the map."""
    row = scores(run.metrics()[0]).get("inputs" if run.is_embedding_set else "trained", {})
    score = row.get("map_at_r") if row.get("weights") == data.source.stem else None
    of_test = "" if run.is_embedding_set else "test "
    classes = f"of {len(data.sheet.labels):,} classes" if data.has_labels else "without labels"
    points = f"{len(data.sheet.indices):,} {of_test}embeddings {classes}"
    measure = f"{of_test}MAP@R".replace("test", "Test")
    tested = f" {measure} {percent(score)}, computed from the embeddings, not from the map." if score else ""
    frames = (
        f"{data.words} Colours based on neighbours use the evaluated weights at every step."
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
        believed += " With too many points in view, the map shows a sample that keeps their density."
    return f"{frames} {MEANING[method]}{believed}"


def explanation(run: Run, data: MapData) -> str:
    """Return the tooltip of the caption: quality measures, keyboard shortcuts, and scores of the untrained network."""
    return "\n\n".join(filter(None, (trust(data), KEYS, beside(run).strip())))


def trust(data: MapData) -> str | None:
    """Return an explanation of the map's quality measures, or None if they were not computed."""
    measured = data.quality
    if measured is None:
        return None
    sampled = f" Measured on {measured.sampled:,} of the points." if measured.sampled < measured.points else ""
    if measured.among is not None:
        sampled = (
            f" Measured on {measured.sampled:,} points and their neighbours among {measured.among:,} points that were "
            "added to an existing map."
        )
    return f"**Trustworthiness**: {TRUST}\n\n**Kept neighbours**: {KEPT}{sampled}"


page()
