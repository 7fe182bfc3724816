"""Map: the test embeddings on a plane, by class."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.figures.maps import class_map
from dmlcore.inspection.learned import Learned, Unreadable
from dmlcore.runs import Run, RunStore
from pages._ui import job, map_canvas, run_picker, thumbnails
from pages._ui.learned import learned, naming, outdated, plane
from pages._ui.live import percent

CANVAS = "class_map"
AT_ONCE = 4 << 20  # bytes of embeddings (some 7,000 of 128 dimensions) whose map is computed unasked


def page() -> None:
    st.title("Map of the embeddings", anchor=False)
    st.markdown(
        "Each mark is a test sample, coloured by its class; samples that the network finds similar lie together. "
        "Point at one to see it, click it to see its nearest neighbours, click classes to make them stand out."
    )
    boxes = st.container(horizontal=True)
    run = run_picker.pick(RunStore(), into=boxes, width=470)
    if run is None:
        return
    source, file = run.embeddings(), run.projection()
    if source is None:
        st.markdown("This run has not been evaluated yet: its map needs the embeddings of the test part.")
        job.offer(run, "evaluate")
        return
    if outdated(run, source):
        st.caption("The run was trained on since its last evaluation.")
        job.offer(run, "evaluate")
    elif file is None:
        st.markdown(
            "These embeddings have no map yet: t-SNE takes seconds for hundreds of samples, minutes for "
            "tens of thousands."
        )
        job.offer(run, "project", at_once=source.stat().st_size < AT_ONCE)
    if file is None:
        return
    try:
        found = learned(source)
    except Unreadable as error:
        st.error(str(error), icon=":material/broken_image:")
        job.offer(run, "evaluate")
        return
    try:
        draw(run, found, file, boxes)
    except (Unreadable, ValueError) as error:
        st.error(str(error), icon=":material/broken_image:")
        job.offer(run, "project")


def draw(run: Run, found: Learned, file: Path, boxes: DeltaGenerator) -> None:
    """Filter (beside the run), canvas and caption."""
    name = naming(run)
    points, perplexity = plane(file)
    figure = class_map(points, found.labels, found.indices, name)
    present = [c["label"] for c in figure["classes"]]
    highlight = boxes.multiselect(
        "Classes that stand out",
        present,
        format_func=name,
        key=_classes(run),
        placeholder="all; type to search a class",
        help="Only these classes keep their colour; the legend does the same by a click",
        width="stretch",
    )
    wanted = st.query_params.get("point", "")
    row = found.row(wanted)
    if wanted and row is None:
        st.warning("The point of the link is not in the test part of this run.", icon=":material/link_off:")
    clicked = map_canvas.show(
        figure,
        key=CANVAS,
        pictures=thumbnails.address(run),
        highlight=highlight,
        mark=None if row is None else int(found.indices[row]),
        on_toggle=lambda: _toggle(_classes(run)),
    )
    if clicked is not None:
        st.switch_page("gallery.py", query_params={"run": run.id, "query": str(clicked)})
    st.caption(
        f"t-SNE (perplexity {perplexity:g}, seed {run.spec.seed}) of {len(found.labels):,} test "
        f"embeddings of {len(present):,} classes. Test MAP@R {percent(found.map_at_r)}, measured on the embeddings "
        "themselves, not on this plane. t-SNE keeps neighbours together; how far apart groups lie, how large and how "
        "dense they are means nothing. A name stands at the most central sample of its class. Zoom with + and −, or "
        "Ctrl and the wheel; drag to move; arrow keys go from point to point."
    )


def _classes(run: Run) -> str:
    return f"classes of {run.id}"


def _toggle(key: str) -> None:
    label, chosen = st.session_state[CANVAS]["toggle"], st.session_state.get(key, [])
    if label is not None:
        st.session_state[key] = [c for c in chosen if c != label] if label in chosen else [*chosen, label]


page()
