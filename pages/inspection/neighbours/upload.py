"""Search with an image that the user uploads: it is decoded safely, embedded on the CPU and searched exactly."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dmlcore.data import DataError, Dataset
from dmlcore.data.files.images import SUFFIXES
from dmlcore.inspection import own_images
from dmlcore.inspection.images import fit_into
from dmlcore.inspection.index import Index
from dmlcore.inspection.maps import maps
from dmlcore.models.networks import ModelError
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.checkpoint import CheckpointError
from dmlcore.storage.runs import Run, RunError
from dmlcore.typing import Singles
from pages.inspection.neighbours import rows as rows_view
from pages.shared.server import thumbnails
from pages.shared.widgets import menu, neighbour_grid
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.words import sentences as words

MEGABYTES = 20
SHOWN = 16  # neighbours


def show(shown: ShownRun) -> int:
    """Show the uploaded image and its nearest test samples.

    Returns:
        The data set index of the nearest sample, or -1 if no image was uploaded.
    """
    try:
        data = thumbnails.dataset(shown.run.spec)
    except DataError:  # reported above
        st.info("Searching by image needs the data set of this run, which cannot be read.", icon=":material/info:")
        return -1
    if not own_images.InputFormat.of(data).takes_images:
        st.info(
            "This data set has no images. Open a run trained on images to search by image.",
            icon=":material/info:",
        )
        return -1
    given = st.file_uploader(
        "Your own image",
        type=[suffix.removeprefix(".") for suffix in SUFFIXES],
        key="own_image",
        max_upload_size=MEGABYTES,
        help="The server embeds the image and does not store it. It applies the EXIF rotation and crops the centre",
    )
    try:
        with st.spinner("Loading the network …", show_time=True):
            index = _index(shown.source)
            index.network()  # load the network while the user chooses an image
        if given is None:
            side = data.inputs.shape[-1] if len(data.inputs.shape) == 4 else own_images.GREY[data.name][0]
            st.caption(f"The network returns the most similar test samples. It sees {side} × {side} pixels.")
            return -1
        if given.size > MEGABYTES << 20:  # the browser refuses such files
            raise DataError(f"{given.name} has {given.size:,} bytes, the limit is {MEGABYTES} MB; use a smaller image")
        return _search(shown, index, data, given.getvalue(), given.name)
    except DataError as error:
        st.error("This file cannot be used as a query:", icon=":material/broken_image:")
        st.text(words.plain(error))
    except (RunError, CheckpointError, ModelError, Unreadable) as error:
        st.error("The network of this run cannot be used:", icon=":material/broken_image:")
        st.text(words.plain(error))
    return -1


def _search(shown: ShownRun, index: Index, data: Dataset, content: bytes, name: str) -> int:
    file = io.BytesIO(content)
    file.name = name
    invert = False
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if own_images.InputFormat.of(data).is_ink:
            invert = st.toggle(
                "Dark ink on paper",
                own_images.is_dark_on_light(file),
                key=f"invert {hash(content)}",
                help="Inverts the image, because this data set has light strokes on black",
            )
        classes = np.unique(shown.test.labels[index.searched]).tolist()
        label = st.selectbox(
            "Class, if known",
            [None, *classes],
            format_func=lambda c: "unknown" if c is None else shown.name(c),
            key="own_class",
            width=240,
            help="Marks right and wrong neighbours",
        )
    inputs = own_images.as_inputs([file], data, invert=invert)
    embedding = index.embed(inputs)
    distances, rows = index.search(embedding, min(SHOWN, len(index.searched)))
    searched = shown.test
    typical = float(np.median(searched.distances[:, 0]))
    labels = searched.labels[rows[0]]
    common = np.bincount(labels).argmax()
    query = neighbour_grid.Tile(
        -1,
        "your image" if label is None else shown.name(label),
        ("as the network sees it",),
        src=_address(inputs, data),
    )
    neighbours = [
        shown.neighbour(row, None if label is None else bool(searched.labels[row] == label), f"{distance:.3f}")
        for distance, row in zip(distances[0], rows[0], strict=True)
    ]
    st.html(neighbour_grid.html([(query, neighbours)], thumbnails.address(shown.run), rows_view.link(shown.run)))
    st.text(
        f"{int((labels == common).sum())} of these {len(labels)} are of class {shown.name(int(common))}. "
        f"The nearest is at distance {distances[0, 0]:.3f}; the median distance from a test sample to its nearest "
        f"neighbour is {typical:.3f}. Any image has a nearest neighbour, even if nothing in the data set resembles it."
    )
    _offer_map(shown.run, embedding)
    return int(searched.indices[rows[0, 0]])


def _offer_map(run: Run, embedding: Singles) -> None:
    """Show a button that opens the newest map of the run and marks the position of the uploaded image."""
    made = maps.list_settings(run)
    if not made or not st.button("Show on the map", icon=":material/bubble_chart:"):
        return
    path = maps.find(run, made[0])
    if path is None:  # the run was deleted in the meantime
        return
    with st.spinner("Placing the image on the map …"):
        x, y = maps.place(maps.read(path), embedding)[0].tolist()
    menu.go("explore", {"run": run.id, "map": made[0].name, "own": f"{x:.6g},{y:.6g}"})


def _address(inputs: NDArray[np.generic], data: Dataset) -> str:
    """Return the network's input as a data URL with a PNG image."""
    one = inputs[0]
    if one.ndim == 3:
        pixels = np.ascontiguousarray(np.broadcast_to(one, (3, *one.shape[1:])).transpose(1, 2, 0))
    else:
        side = own_images.GREY[data.name][0]
        pixels = np.rint(one.reshape(side, side, 1).repeat(3, axis=2) * 255).astype(np.uint8)
    file = io.BytesIO()
    fit_into(pixels, thumbnails.SIDE).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


@st.cache_resource(max_entries=3, show_spinner=False)
def _index(source: Path) -> Index:
    return Index.of_run(Run(source.parents[1]))
