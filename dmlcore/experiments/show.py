"""Display of embeddings from a Python session or notebook: storing them as an embedding set, and opening the app."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dmlcore.data.embedding_sets.gather import gather
from dmlcore.experiments import embedding_sets
from dmlcore.experiments.embedding_set_handle import EmbeddingSetHandle
from dmlcore.jobs import local_app
from dmlcore.storage.runs import RUN_ID, Run, RunStore

PAGE = "explore"  # address of the page that opens


def show(
    embeddings: Any,
    labels: Any = None,
    images: Any = None,
    metadata: Any = None,
    *,
    vectors: str | None = None,
    name: str = "",
    runs: str | Path | None = None,
    open_browser: bool = True,
) -> EmbeddingSetHandle:
    """Store embeddings as an embedding set and open their map in the app.

    The app is started in the background if none is running; it keeps running when Python ends. If it cannot be started,
    the set is stored all the same, and a message says how to start the app.

    Args:
        embeddings: N vectors of D numbers: an array, tensor, list of lists or data frame (N, D); a data frame or Arrow
            table with a column of vectors; or a file (.npy, .npz, .parquet, .arrow, .csv, .tsv, .safetensors). The id
            of a stored embedding set, or its run, opens that set again, without storing anything.
        labels: N labels (list, array, tensor or series), the name of a column, or a file with one row per vector. By
            default a column with a usual name, such as "label" or "class", else the only one whose values repeat like
            those of labels, with a message.
        images: Folder of images; N paths; the name of a column with paths; N images as an array (N, H, W, 3) or
            (N, H, W) of uint8; or N PIL images. Arrays are stored in the set, files stay where they are. The files of a
            folder are assigned by a column of paths or ids, else in the order of their paths.
        metadata: Further columns, which colour and filter the map: a data frame, or a mapping of names to N values.
        vectors: Column or array with the vectors, if `embeddings` has several candidates.
        name: Name of the embedding set.
        runs: Folder of the run store; by default $DML_RUNS or ./runs.
        open_browser: Open the map in the browser. The link is printed in any case.

    Returns:
        Handle with `scores`, `neighbours(k)`, `failures()`, the row numbers of the last `selection` in the browser and
        of the samples that are `tagged(name)` there, and `to_csv(path, rows)`. A notebook displays it as a link.

    Raises:
        DataError: The input is invalid; the message names the row, the column and the value. Nothing is stored.
        RunError: `embeddings` is a run that is not an embedding set.
        OSError: The disk is full; nothing is left behind.

    Example:
        >>> import numpy as np
        >>> import dmlcore
        >>> embeddings, labels = np.random.default_rng(0).normal(size=(300, 64)), np.arange(300) % 10
        >>> shown = dmlcore.show(embeddings, labels)  # doctest: +SKIP
        300 samples of 10 classes; MAP@R → 1.6 %
        http://127.0.0.1:8501/explore?run=20261127-0931-embeddings-embeddings-1f3c
        >>> distances, rows = shown.neighbours(5)  # doctest: +SKIP
        >>> lassoed = embeddings[shown.selection]  # doctest: +SKIP
    """
    store = RunStore(runs)
    run = _stored(store, embeddings)
    if run is None:
        run = _create(store, embeddings, labels, images, metadata, vectors, name)
    handle = EmbeddingSetHandle(run, "")
    _print(run.state().message)
    handle.url = open_app(run, open_browser=open_browser)
    return handle


def _print(text: str) -> None:
    print(text, flush=True)


def open_app(run: Run, *, open_browser: bool = True, report: Callable[[str], None] = _print) -> str:
    """Start the app if it is not running, report the link to the map of a run, and open it in the browser.

    If the app cannot be started, the reason and a remedy are reported instead.

    Args:
        run: Run or embedding set to show.
        open_browser: Open the map in the browser, unless this machine has no screen.
        report: Function that receives the link and other messages.

    Returns:
        The address of the map.
    """
    root, address = run.path.parent, f"/{PAGE}?run={run.id}"
    try:
        app = local_app.ensure(root)
    except local_app.AppError as error:
        url = local_app.url_of(local_app.PORTS[0]) + address
        report(f"{error}\nThe embeddings are stored in {run.path}. When the app runs, open {url}")
        return url
    url = app.url + address
    report(url)
    if app.process is not None:
        report(f"The app was started in the background; to stop it: kill {app.process}")
    if open_browser and _has_display():
        webbrowser.open(url)
    return url


def _create(
    store: RunStore, embeddings: Any, labels: Any, images: Any, metadata: Any, vectors: str | None, name: str
) -> Run:
    with tempfile.TemporaryDirectory() as scratch:
        given = gather(embeddings, labels, images, metadata, vectors=vectors, scratch=Path(scratch))
        for note in given.guesses:
            _print(f"{note}; choose others with labels=")
        return embedding_sets.create(
            store,
            given.table,
            given.roles,
            name=name,
            images=given.images,
            copy_images=given.copy_images,
            image_roots=(Path("/"),),
            report=lambda words: print(words, file=sys.stderr, flush=True),
        )


def _stored(store: RunStore, given: Any) -> Run | None:
    """Return the run if `given` is a run or the id of a stored run, else None."""
    if isinstance(given, Run):
        return given
    is_id = isinstance(given, str) and RUN_ID.fullmatch(given) and (store.root / given).is_dir()
    return store.open(given) if is_id else None


def _has_display() -> bool:
    """Return False on a machine without screen, where Python would open a browser of text in the terminal."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
