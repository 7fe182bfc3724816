"""Downloads for an evaluated run: report, embeddings, map and projector folder, each created when it is requested."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import streamlit as st

from dmlcore.data import Dataset
from dmlcore.experiments import protocols
from dmlcore.inspection import export
from dmlcore.inspection.selections import Selection
from dmlcore.spec import SpecError
from dmlcore.storage.runs import Run
from pages.shared.server import thumbnails

ALL, CHOSEN = "all samples", "the selection"
READ = """import numpy as np, pandas as pd
from dmlcore.inspection.index import Index
from dmlcore.storage.runs import RunStore

# embeddings, labels, indices, class_names, keys
found = np.load("embeddings.npz")
frame = pd.read_parquet("embeddings.parquet")
index = Index.of_run(RunStore().open("{run}"))
distances, rows = index.search(found["embeddings"][:5], k=8)"""


# Files to download: name -> label, media type, icon and tooltip.
FILES = {
    "report.html": (
        "Report, one HTML file",
        "text/html",
        ":material/article:",
        "Scores, map, worst failures and best queries with their neighbours; opens offline without external resources",
    ),
    "samples.csv": (
        "Samples, CSV",
        "text/csv",
        ":material/csv:",
        "One row per sample: row number, and id, label, image file and metadata where the data set has them",
    ),
    "embeddings.npz": (
        "Embeddings, npz",
        "application/octet-stream",
        ":material/data_array:",
        "Arrays embeddings, labels, indices, class_names and keys for numpy.load; no pickled objects",
    ),
    "embeddings.parquet": (
        "Embeddings and neighbours, Parquet",
        "application/vnd.apache.parquet",
        ":material/table:",
        "One row per sample: index, key, label, class, part, embedding, neighbours, distances, right",
    ),
    "projector.zip": (
        "TensorBoard projector, ZIP",
        "application/zip",
        ":material/scatter_plot:",
        "vectors.tsv, metadata.tsv, sprite.png and projector_config.pbtxt for TensorBoard's Embedding Projector",
    ),
    "map.csv": (
        "Map, CSV",
        "text/csv",
        ":material/csv:",
        "One row per sample: index, key, label, class, part, x, y, whether the nearest neighbour is right, and AP@R",
    ),
}


def offer(run: Run, selection: Selection | None = None) -> None:
    """Show a popover with all downloads for an evaluated run.

    With a `selection`, the visitor may limit the downloads to the selected samples.
    """
    if run.embeddings() is None:
        return
    with st.popover("Export", icon=":material/download:", key=f"export-{run.id}"):
        chosen = None
        if selection is not None:
            which = st.segmented_control(
                "Samples",
                [CHOSEN, ALL],
                default=CHOSEN,
                required=True,
                key=f"export-which-{run.id}",
                format_func=lambda w: f"{len(selection.indices):,} selected" if w == CHOSEN else w,
            )
            chosen = selection if which == CHOSEN else None
        _downloads(run, chosen)
        st.caption("Export from the command line, and read the files in Python:")
        more = f" --selection {chosen.id}" if chosen else ""
        st.code(f"python -m dmlcore export {shlex.quote(run.id)} --to report.html{more}", language="bash")
        st.code(READ.format(run=run.id), language="python")


def _downloads(run: Run, chosen: Selection | None) -> None:
    """Show one button per file that the run has; its content is computed when the button is clicked."""
    has_map, has_data = run.projection() is not None, thumbnails.readable(run.spec)
    missing = {"map.csv": not has_map, "samples.csv": not has_data}
    st.caption("Each file is created on request. A report with thousands of images takes several seconds.")
    for name, (label, mime, icon, text) in FILES.items():
        if not missing.get(name):
            st.download_button(
                label,
                partial(_content, run, name, chosen),
                file_name=f"{run.id}{'-selection' if chosen else ''}-{name}",
                mime=mime,
                icon=icon,
                help=text,
                key=f"export-{run.id}-{name}",
                on_click="ignore",
                width="stretch",
            )
    if not has_map:
        st.caption("There is no map yet. Once it is computed, the report includes it, and it can be exported as CSV.")


def _content(run: Run, name: str, chosen: Selection | None) -> bytes:
    remarks: list[str] = []
    with suppress(SpecError):  # the protocol of the run cannot be read
        remarks = protocols.remarks(run.spec)
    indices = None if chosen is None else chosen.indices
    return export.content(run, name, indices, load=thumbnails.dataset, remarks=remarks)


def csv_button(run: Run, label: str, name: str, key: str, make: Callable[[Dataset], str]) -> None:
    """Show a button that downloads samples as CSV; nothing is shown if the data set cannot be read.

    Args:
        run: Run of the samples.
        label: Text of the button.
        name: End of the file name, after the id of the run.
        key: Key of the widget.
        make: Returns the text of the file.
    """
    if not thumbnails.readable(run.spec):
        return
    st.download_button(
        label,
        lambda: make(thumbnails.dataset(run.spec)),
        file_name=f"{run.id}-{name}.csv",
        mime="text/csv",
        icon=":material/csv:",
        help="Row number, and id, label, image file and metadata where the data set has them",
        key=key,
        on_click="ignore",
    )
