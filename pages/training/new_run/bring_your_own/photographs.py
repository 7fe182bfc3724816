"""Inputs of photographs: a folder, a table of labels, and the network that embeds them."""

from __future__ import annotations

import hashlib

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.data.embedding_sets.files import LABEL_FORMATS
from dmlcore.experiments.photographs import NETWORK, EmbedRequest
from dmlcore.models import pooled_features
from pages.shared.server.server_paths import allowed_folders
from pages.shared.widgets.error_boundary import refusal
from pages.shared.words.labels import WORDS
from pages.training.new_run.bring_your_own import inputs

MAX_NAME = 80  # characters


def show() -> tuple[EmbedRequest, DeltaGenerator, DeltaGenerator] | None:
    """Show the inputs; return None while photographs are missing or an input cannot be used.

    Returns:
        The request, and the containers of its outcome and of its button.
    """
    with st.container(key="photographs"):
        first, second = st.columns(2, gap="medium")
    with first:
        st.markdown("**Photographs**")
        photographs, uploaded, first_fails = inputs.images_input("photographs")
        st.caption("Class folders give labels. Photographs that cannot be read are left out.")
    with second:
        st.markdown("**Labels and metadata** (optional)")
        labels, second_fails = inputs.file_input("labels", LABEL_FORMATS)
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
    key = hashlib.sha256(str(photographs).encode(errors="surrogatepass")).hexdigest()[:12]
    outcome, row = inputs.start_row()
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
        named = "Photographs" if uploaded else photographs.stem
        name = st.text_input("Name", named[:MAX_NAME], max_chars=MAX_NAME, key=f"name-{key}", width=300)
    request = EmbedRequest(
        photographs=str(photographs),
        network=network,
        labels=labels and str(labels),
        name=(name or "").strip(),
        copy_images=uploaded,
        image_roots=tuple(map(str, allowed_folders())),
    )
    return request, outcome, row
