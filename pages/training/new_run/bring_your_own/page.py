"""Bring your own: embeddings that were computed elsewhere, or photographs that a pretrained network embeds."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets.preview import Preview
from dmlcore.data.embedding_sets.table import AmbiguousVectors
from dmlcore.experiments import embedding_sets, imports
from dmlcore.experiments.imports import ImportRequest, ImportState
from dmlcore.experiments.photographs import EmbedRequest
from dmlcore.jobs import launch
from dmlcore.storage.runs import RunError, RunStore
from dmlcore.storage.task import JobError
from pages.shared.server import host
from pages.shared.server.server_paths import allowed_folders
from pages.shared.widgets import menu, waiting
from pages.shared.widgets.error_boundary import refusal
from pages.training.new_run.bring_your_own import inputs, mapping, photographs
from pages.training.new_run.bring_your_own import service as import_service

REFUSED = "Not imported"
DONE = "id of the imported set"  # session key, set until the visitor has been sent to Explore
MOST_MAPPED = 50_000  # largest number of samples of which a map is computed without being asked
MAX_NAME = 80
KINDS = ("Embeddings", "Photographs")
PROGRESS = "Keep this page open to see the map when it is done."


def page() -> None:
    _open_imported()
    menu.views("bring_your_own", "Bring your own")
    st.markdown("Look at embeddings of your own, or at photographs: map, neighbours, failures. Nothing is trained.")
    if st.segmented_control("Kind", KINDS, default=KINDS[0], key="kind", label_visibility="collapsed") == KINDS[1]:
        asked = photographs.show()
        if asked is not None:
            _offer(*asked, "Embed", ":material/photo_library:")
        return
    given = inputs.show()
    if given.embeddings is None:
        st.button(
            "Try it with an example",
            key="example",
            icon=":material/draw:",
            on_click=inputs.use_example,
            help="Embeddings of 500 handwritten digits, with labels and images",
        )
        return
    seen, vectors = _preview(given)
    if seen is None or not given.complete:
        return
    mapping.show_size(seen)
    files = f"{given.embeddings} {given.labels} {vectors}"
    key = hashlib.sha256(files.encode(errors="surrogatepass")).hexdigest()[:12]
    roles = mapping.choose_roles(seen, key)
    matched = st.container()
    outcome, row = inputs.start_row()
    with row:
        name = st.text_input("Name", given.embeddings.stem[:MAX_NAME], max_chars=MAX_NAME, key=f"name-{key}", width=300)
        normalize = st.toggle(
            "Cosine similarity",
            True,
            key=f"cosine-{key}",
            help="Divides each vector by its length. Switch it off to compare by Euclidean distance.",
        )
    request = ImportRequest(
        file=str(given.embeddings),
        labels=given.labels and str(given.labels),
        images=given.images and str(given.images),
        vectors=vectors,
        label=roles.label,
        id=roles.id,
        image=roles.image,
        split=roles.split,
        name=(name or "").strip(),
        normalize=normalize,
        copy_images=given.uploaded_images,
        image_roots=tuple(map(str, allowed_folders())),
    )
    with matched:
        mapping.show_match(import_service.match_images(request))
    mapping.show_rows(seen)
    in_background = seen.rows > imports.FEW_ROWS
    _offer(request, outcome, row, "Import", ":material/input:", in_background=in_background)


def _preview(given: inputs.Given) -> tuple[Preview | None, str | None]:
    """Return a preview of the files, None if they cannot be used, and the column with the embeddings if there is a
    choice.
    """
    assert given.embeddings is not None
    chosen = None
    try:
        try:
            with st.spinner("Reading the files …"):
                return import_service.preview_files(given.embeddings, given.labels, None), None
        except AmbiguousVectors as several:
            names = several.candidates
            chosen = st.selectbox(
                "Embeddings",
                list(names),
                format_func=lambda name: f"{name} ({names[name]})" if names[name] else name,
                key=f"vectors-{given.embeddings}",
                help="This file has several columns or arrays that may be the embeddings.",
                width=300,
            )
            return import_service.preview_files(given.embeddings, given.labels, chosen), chosen
    except (DataError, OSError) as error:
        refusal(REFUSED, import_service.without_folders(inputs.place(), str(error)))
        return None, chosen


def _offer(
    request: ImportRequest | EmbedRequest,
    outcome: DeltaGenerator,
    row: DeltaGenerator,
    verb: str,
    icon: str,
    *,
    in_background: bool = True,
) -> None:
    """Show the button that stores the set in `row`, and progress and errors in `outcome`."""
    place, store = inputs.place(), RunStore()
    with outcome:
        if waiting.wait(place, "import", lambda state: waiting.counted(state, "{:,.0f}".format), then=PROGRESS):
            return
        state = place.state()
        if state is not None and state.state == "done":
            _arrive(state)
            return
    pressed = row.button(verb, key="import", type="primary", icon=icon)
    with outcome:
        if not pressed:
            if place.status() == "failed" and state is not None:
                refusal(REFUSED, import_service.without_folders(place, state.message))
            elif place.status() == "cancelled":
                st.caption("Cancelled. Nothing was stored.")
            else:
                waiting.ended(place)
            return
        try:
            if in_background or isinstance(request, EmbedRequest):
                place.begin(request, store)
                st.rerun()
            with st.spinner("Importing …", show_time=True):
                run = imports.create(store, request)
                st.session_state[DONE] = run.id
        except (DataError, JobError, RunError, OSError) as error:
            refusal(REFUSED, import_service.without_folders(place, str(error)))
            return
    _open_imported()


def _arrive(state: ImportState) -> None:
    """Open the set that was stored in the background; if photographs were left out, name them first."""
    if state.note:
        st.markdown(f"**{state.message}**")
        st.text(import_service.without_folders(inputs.place(), state.note))
        if not st.button("Open the map", key="open", type="primary", icon=":material/scatter_plot:"):
            return
    st.session_state[DONE] = state.run
    _open_imported()


def _open_imported() -> None:
    """Compute the map of a set that was just imported, remove the uploaded files, and open the set in Explore."""
    run_id = st.session_state.pop(DONE, None)
    if run_id is None:
        return
    inputs.place().remove()
    inputs.forget()
    host.remove_own_uploads()
    with suppress(RunError, JobError, DataError, OSError):  # Explore offers the map
        run = RunStore().open(run_id)
        if len(embedding_sets.of_run(run).labels) <= MOST_MAPPED:
            launch.project(run)
    menu.go("explore", {"run": run_id})


page()
