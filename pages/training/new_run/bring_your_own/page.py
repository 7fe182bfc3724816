"""Bring your own: embeddings that were computed elsewhere, or photographs that a pretrained network embeds."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets.image_match import ImageMatch
from dmlcore.data.embedding_sets.preview import Preview
from dmlcore.data.embedding_sets.roles import Roles
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
from pages.shared.words import sentences as words
from pages.training.new_run.bring_your_own import inputs
from pages.training.new_run.bring_your_own import service as import_service

REFUSED = "Not imported"
DONE = "id of the imported set"  # session key, set until the visitor has been sent to Explore
MOST_MAPPED = 50_000  # largest number of samples of which a map is computed without being asked
KINDS = ("Embeddings", "Photographs")
PROGRESS = "Keep this page open to see the map when it is done."
ROLES = {
    "label": ("Label", "Class of each sample; without labels, maps and neighbours still work"),
    "id": ("Id", "Unique name of each sample"),
    "image": ("Image", "File name of each image"),
    "split": ("Split", "Column with the words train, validation and test"),
}


NO_LABELS = (
    "**No labels.** If a column holds the class of each sample, choose it as Label: colours by class, failures and "
    "scores need it."
)


REMEDY = "Add the missing files, choose another Image column, or import without images."
GUESSED = (
    "**Is this the label?** It was guessed, because its values repeat. If it is wrong, choose another column or none."
)


def page() -> None:
    _open_imported()
    menu.views("bring_your_own", "Bring your own")
    st.markdown("Look at embeddings of your own, or at photographs: map, neighbours, failures. Nothing is trained.")
    if st.segmented_control("Kind", KINDS, default=KINDS[0], key="kind", label_visibility="collapsed") == KINDS[1]:
        asked = inputs.show_photographs()
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
    _show_size(seen)
    key = inputs.key_of(given.embeddings, given.labels, vectors)
    roles = _choose_roles(seen, key)
    matched = st.container()
    outcome, row = inputs.start_row()
    with row:
        name = inputs.name_input(given.embeddings.stem, key)
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
        name=name,
        normalize=normalize,
        copy_images=given.uploaded_images,
        image_roots=tuple(map(str, allowed_folders())),
    )
    with matched:
        _show_match(import_service.match_images(request))
    _show_rows(seen)
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


def _show_size(seen: Preview) -> None:
    """Show size and data type of the embeddings, and notes on the files."""
    st.markdown(f"**{seen.rows:,} vectors of {seen.dimensions:,} dimensions** ({seen.dtype})")
    for note in seen.notes:
        st.text(note)


def _show_rows(seen: Preview) -> None:
    """Show the first rows of the files."""
    columns: dict[str, Any] = {f"vector ({seen.dimensions:,})": list(seen.vectors)}
    columns |= {name: [None if value is None else str(value) for value in seen.first[name]] for name in seen.columns}
    st.dataframe(columns, hide_index=True, key="first-rows", height="content")
    if seen.rows > len(seen.vectors):
        st.caption(f"The first {len(seen.vectors)} of {seen.rows:,} rows.")


def _show_match(match: ImageMatch | None) -> None:
    """Show how many rows have an image; warn if some have none, because the import refuses them."""
    if match is None:
        return
    text = f"{match.matched:,} of {match.rows:,} rows have an image"
    if match.matched == match.rows:
        st.markdown(f":green[:material/check_circle:] {text}")
        return
    st.warning(f"**{text}.** {REMEDY}", icon=":material/hide_image:")
    st.text(words.plain(match.reason))


def _choose_roles(seen: Preview, key: str) -> Roles:
    """Show a select box per role with the guessed column; return the chosen columns.

    `key` identifies the files, so that other files start from their own guess.
    """
    if not seen.columns:
        return Roles()
    guess = asdict(seen.roles)
    chosen: dict[str, str | None] = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for role, (label, explanation) in ROLES.items():
            options = ["", *seen.columns]
            column = st.selectbox(
                label,
                options,
                options.index(guess[role] or ""),
                format_func=lambda name: name or "none",
                key=f"role-{role}-{key}",
                help=explanation,
                width=200,
            )
            chosen[role] = column or None
    if seen.label_is_guessed and chosen["label"] == seen.roles.label:
        st.info(GUESSED, icon=":material/help:")
    if chosen["label"] is None:
        st.warning(NO_LABELS, icon=":material/label_off:")
    return Roles(**chosen)


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
