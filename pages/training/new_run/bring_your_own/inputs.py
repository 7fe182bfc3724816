"""Inputs of an import: embeddings or photographs with labels and images, uploaded or named by a path on the server."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.data.dataset import DataError
from dmlcore.data.embedding_sets.files import FORMATS, LABEL_FORMATS
from dmlcore.experiments import imports
from dmlcore.experiments.imports import Import
from dmlcore.experiments.photographs import NETWORK, EmbedRequest
from dmlcore.models import pooled_features
from dmlcore.storage.home import HOME
from pages.shared.server.server_paths import EXAMPLES, allowed_folders, require_allowed
from pages.shared.widgets.component import component
from pages.shared.widgets.error_boundary import refusal
from pages.shared.words.labels import WORDS
from pages.training.new_run.bring_your_own import service as import_service

MAX_NAME = 80  # characters
MEGABYTES = 200  # largest uploaded file
MOST_UPLOADS = 30  # number of files that the browser sends one by one; more are packed into one .zip file first
PLACE = "folder of the import"  # session key
INVALID = "Cannot be used"
_packing = component("training/image_upload")
EXAMPLE = {"embeddings": "digits.npy", "labels": "digits.csv", "images": "digits.zip"}


@dataclass(frozen=True)
class Given:
    """Files that the visitor gave; `uploaded_images` is True if the images are to be copied from uploads."""

    embeddings: Path | None
    labels: Path | None
    images: Path | None
    uploaded_images: bool
    complete: bool  # False if one of the inputs cannot be used


def place() -> Import:
    """Return the import of this session; its folder receives the uploaded files."""
    made = st.session_state.get(PLACE)
    if made is None or not made.path.is_dir():
        made = st.session_state[PLACE] = imports.new_import()
    return made


def forget() -> None:
    """Start another import the next time that the page is shown."""
    st.session_state.pop(PLACE, None)


def show() -> Given:
    """Show the three inputs next to each other, with an error below each that cannot be used; return their files."""
    with st.container(key="given"):
        first, second, third = st.columns(3, gap="medium")
    with first:
        st.markdown("**Embeddings**")
        embeddings, first_fails = file_input("embeddings", FORMATS)
        st.caption("One vector per sample.")
    with second:
        st.markdown("**Labels and metadata** (optional)")
        labels, second_fails = file_input("labels", LABEL_FORMATS)
        st.caption("One row per vector, in the same order.")
    with third:
        st.markdown("**Images** (optional)")
        images, uploaded, third_fails = images_input()
        st.caption("Matched by a column with file names, or in order.")
    return Given(embeddings, labels, images, uploaded, not (first_fails or second_fails or third_fails))


def show_photographs() -> tuple[EmbedRequest, DeltaGenerator, DeltaGenerator] | None:
    """Show the inputs; return None while photographs are missing or an input cannot be used.

    Returns:
        The request, and the containers of its outcome and of its button.
    """
    with st.container(key="photographs"):
        first, second = st.columns(2, gap="medium")
    with first:
        st.markdown("**Photographs**")
        photographs, uploaded, first_fails = images_input("photographs")
        st.caption("Class folders give labels. Photographs that cannot be read are left out.")
    with second:
        st.markdown("**Labels and metadata** (optional)")
        labels, second_fails = file_input("labels", LABEL_FORMATS)
        st.caption("One row per photograph, with its file name.")
    networks = list(pooled_features.available())
    if not networks:
        refusal(
            "No network",
            f"No ImageNet weights are on this machine. Download them with: dml embed FOLDER --network {NETWORK}",
        )
        return None
    if photographs is None or first_fails or second_fails:
        return None
    outcome, row = start_row()
    with row:
        network = st.selectbox(
            "Network",
            networks,
            networks.index(NETWORK) if NETWORK in networks else 0,
            format_func=lambda name: WORDS.get(name, name),
            key="network",
            help="Trained on ImageNet; its weights are on this machine.",
            width=300,
        )
        name = name_input("Photographs" if uploaded else photographs.stem, key_of(photographs))
    request = EmbedRequest(
        photographs=str(photographs),
        network=network,
        labels=labels and str(labels),
        name=name,
        copy_images=uploaded,
        image_roots=tuple(map(str, allowed_folders())),
    )
    return request, outcome, row


def key_of(*files: object) -> str:
    """Return a short digest of files, so that widgets for other files start from their own values."""
    return hashlib.sha256(" ".join(map(str, files)).encode(errors="surrogatepass")).hexdigest()[:12]


def name_input(default: str, key: str) -> str:
    """Show the input of the set's name; return the name."""
    name = st.text_input("Name", default[:MAX_NAME], max_chars=MAX_NAME, key=f"name-{key}", width=300)
    return (name or "").strip()


def start_row() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return the container of the outcome of an import and, below it, that of the row with its button.

    The outcome is above the button, so that it is in view when the button has been pressed on a small screen.
    """
    outcome = st.container()
    return outcome, st.container(horizontal=True, vertical_alignment="bottom")


def use_example() -> None:
    """Fill the paths with the example that ships."""
    for role, name in EXAMPLE.items():
        st.session_state[_key(role)] = str((EXAMPLES / name).relative_to(HOME))


def file_input(role: str, formats: tuple[str, ...]) -> tuple[Path | None, bool]:
    """Show the input of one file; return its path, None if there is none, and True if the input cannot be used."""
    upload = st.file_uploader(
        role.capitalize(),
        type=[suffix.removeprefix(".") for suffix in formats],
        key=f"upload-{role}",
        max_upload_size=MEGABYTES,
        label_visibility="collapsed",
    )
    text = _path(role, "a file", upload is not None)
    try:
        if upload is not None:
            return import_service.store_file(place(), role, upload), False
        return (require_allowed(text) if text else None), False
    except DataError as error:
        refusal(INVALID, str(error))
        return None, True


def images_input(role: str = "images") -> tuple[Path | None, bool, bool]:
    """Show the input of images: files, a .zip file, a folder, which the browser packs into one, or a path.

    Returns:
        Path of the images, True if they were uploaded, and True if they cannot be used.
    """
    types, key = import_service.image_suffixes(), f"upload-{role}"
    uploads = st.file_uploader(
        role.capitalize(),
        type=types,
        accept_multiple_files=True,
        key=key,
        max_upload_size=MEGABYTES,
        label_visibility="collapsed",
    )
    text = _path(role, "a folder or .zip", bool(uploads))
    limits = {"uploader": key, "few": MOST_UPLOADS, "megabytes": MEGABYTES, "suffixes": types[1:]}
    _packing(key=f"packing-{role}", data=limits)
    count = st.container()
    try:
        if uploads:
            stored = import_service.store_images(place(), uploads)
            with count:
                _show_count(stored)
            return stored, True, False
        path = require_allowed(text) if text else None
        if path is not None and not path.exists():
            raise DataError(f"{text}: no such folder or file; check the path")
        if path is not None:
            with count:
                _show_count(path)
        return path, False, False
    except (DataError, OSError) as error:
        refusal(INVALID, str(error))
        return None, False, True


def _show_count(path: Path) -> None:
    """Show the number of image files in a folder or .zip file."""
    count = import_service.count_images(path)
    if count is None:
        return
    most = "at least " * (count >= import_service.MOST_COUNTED)
    if count:
        st.markdown(f":material/photo_library: {most}{count:,} image {'file' if count == 1 else 'files'} found")
    else:
        kinds = ", ".join(import_service.image_suffixes()[1:]).upper()
        st.markdown(f":orange[:material/warning:] No image files found ({kinds})")


def _path(role: str, kind: str, uploaded: bool) -> str:
    text = st.text_input(
        f"{role.capitalize()}: path on this server",
        key=_key(role),
        placeholder=f"or {kind} on this server",
        label_visibility="collapsed",
        disabled=uploaded,
    )
    return (text or "").strip().strip("'\"")


def _key(role: str) -> str:
    return f"path-{role}"
