"""Downloads for an evaluated run: report, embeddings, map and projector folder, each created when it is requested."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import IO

import streamlit as st

from dmlcore.data import DataError, Dataset
from dmlcore.experiments import protocols
from dmlcore.inspection import export, metadata, report
from dmlcore.inspection.export import EmbeddingTable, ExportError
from dmlcore.inspection.neighbours import read
from dmlcore.inspection.selections import Selection
from dmlcore.spec import SpecError
from dmlcore.storage.arrays import Unreadable
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


def offer(run: Run, selection: Selection | None = None) -> None:
    """Show a popover with all downloads for an evaluated run.

    With a `selection`, the visitor may limit the downloads to the selected samples.
    """
    source = run.embeddings()
    if source is None:
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
        _downloads(run, source, chosen)
        st.caption("Export from the command line, and read the files in Python:")
        more = f" --selection {chosen.id}" if chosen else ""
        st.code(f"python -m dmlcore export {shlex.quote(run.id)} --to report.html{more}", language="bash")
        st.code(READ.format(run=run.id), language="python")


def _downloads(run: Run, source: Path, chosen: Selection | None) -> None:
    def button(
        label: str, suffix: str, mime: str, icon: str, text: str, make: Callable[[EmbeddingTable], bytes | str]
    ) -> None:
        st.download_button(
            label,
            lambda: make(_table(run, source, chosen)),
            file_name=f"{run.id}{'-selection' if chosen else ''}{suffix}",
            mime=mime,
            icon=icon,
            help=text,
            key=f"export-{run.id}{suffix}",
            on_click="ignore",
            width="stretch",
        )

    st.caption("Each file is created on request. A report with thousands of images takes several seconds.")
    button(
        "Report, one HTML file",
        "-report.html",
        "text/html",
        ":material/article:",
        "Scores, map, worst failures and best queries with their neighbours; opens offline without external resources",
        lambda table: report.html(table, _plane(run), _remarks(run)),
    )
    if thumbnails.readable(run.spec):
        button(
            "Samples, CSV",
            "-samples.csv",
            "text/csv",
            ":material/csv:",
            "One row per sample: row number, and id, label, image file and metadata where the data set has them",
            _samples,
        )
    button(
        "Embeddings, npz",
        "-embeddings.npz",
        "application/octet-stream",
        ":material/data_array:",
        "Arrays embeddings, labels, indices, class_names and keys for numpy.load; no pickled objects",
        lambda table: _written(lambda file: export.write_npz(table, file)),
    )
    button(
        "Embeddings and neighbours, Parquet",
        "-embeddings.parquet",
        "application/vnd.apache.parquet",
        ":material/table:",
        "One row per sample: index, key, label, class, part, embedding, neighbours, distances, right",
        lambda table: _written(lambda file: export.write_parquet(table, file, neighbours=True)),
    )
    button(
        "TensorBoard projector, ZIP",
        "-projector.zip",
        "application/zip",
        ":material/scatter_plot:",
        "vectors.tsv, metadata.tsv, sprite.png and projector_config.pbtxt for TensorBoard's Embedding Projector",
        export.projector_zip,
    )
    if _plane(run) is None:
        st.caption("There is no map yet. Once it is computed, the report includes it, and it can be exported as CSV.")
        return
    button(
        "Map, CSV",
        "-map.csv",
        "text/csv",
        ":material/csv:",
        "One row per sample: index, key, label, class, part, x, y, whether the nearest neighbour is right, and AP@R",
        _map,
    )


def _written(write: Callable[[IO[bytes]], None]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _table(run: Run, source: Path, chosen: Selection | None) -> EmbeddingTable:
    try:
        data = thumbnails.dataset(run.spec)
    except DataError:  # the data set is missing; export without class names and images
        data = None
    return export.table(run, source, read(source), data, None if chosen is None else chosen.indices)


def _samples(table: EmbeddingTable) -> str:
    if table.data is None:
        raise ExportError("the data set of this run cannot be read; restore its files")
    return metadata.samples_csv(table.data, table.indices)


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


def _plane(run: Run) -> report.ReportMap | None:
    try:
        return report.newest_map(run)
    except Unreadable:  # the page that shows the map reports the error
        return None


def _map(table: EmbeddingTable) -> str:
    layout = report.newest_map(table.run)
    if layout is None:
        raise ExportError("the map of this run no longer exists; compute it again")
    return export.map_csv(table, layout.points)


def _remarks(run: Run) -> list[str]:
    try:
        lines = protocols.deviations(run.spec)
    except SpecError:
        return []
    return [f"The run deviates from the protocol {run.spec.protocol}: {'; '.join(lines)}."] if lines else []
