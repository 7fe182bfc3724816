"""Map: the test embeddings on a plane, by class."""

from __future__ import annotations

import inspect
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.figures.maps import class_map
from dmlcore.runs import Run, RunStore
from pages._ui import job, map_canvas, run_picker, thumbnails
from pages._ui.learned import Learned, Unreadable, learned, naming, outdated, percent, points

CANVAS = "class_map"


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
    source, plane = run.embeddings(), run.projection()
    if source is None:
        st.markdown("This run has not been evaluated yet: its map needs the embeddings of the test part.")
        job.offer(run, "evaluate")
        return
    if outdated(run, source):
        st.caption("The run was trained on since its last evaluation.")
        job.offer(run, "evaluate")
    elif plane is None:
        st.markdown(
            "These embeddings have no map yet: t-SNE takes seconds for hundreds of samples, minutes for "
            "tens of thousands."
        )
        job.offer(run, "project")
    if plane is None:
        return
    try:
        draw(run, learned(source), plane, boxes)
    except (Unreadable, ValueError) as error:
        st.error(str(error), icon=":material/broken_image:")
        job.offer(run, "project")


def draw(run: Run, found: Learned, plane: Path, boxes: DeltaGenerator) -> None:
    """Filter (beside the run), canvas and caption."""
    name = naming(run)
    figure = class_map(points(plane), found.labels, found.indices, name)
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
        f"t-SNE (perplexity {_perplexity(len(found.labels)):g}, seed {run.spec.seed}) of {len(found.labels):,} test "
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


@st.cache_data(max_entries=64, show_spinner=False)
def _perplexity(samples: int) -> float:
    """What the projection takes for so many samples."""
    from dmlcore.projection import tsne  # scikit-learn takes a second to import, after the map is on its way

    return min(float(inspect.signature(tsne).parameters["perplexity"].default), (samples - 1) / 3)


page()
