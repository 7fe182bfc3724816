"""First rows of the files, and the choice of columns by role."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import streamlit as st

from dmlcore.data.embedding_sets.image_match import ImageMatch
from dmlcore.data.embedding_sets.preview import Preview
from dmlcore.data.embedding_sets.roles import Roles
from pages.shared.words import sentences as words

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


def show_size(seen: Preview) -> None:
    """Show size and data type of the embeddings, and notes on the files."""
    st.markdown(f"**{seen.rows:,} vectors of {seen.dimensions:,} dimensions** ({seen.dtype})")
    for note in seen.notes:
        st.text(note)


def show_rows(seen: Preview) -> None:
    """Show the first rows of the files."""
    columns: dict[str, Any] = {f"vector ({seen.dimensions:,})": list(seen.vectors)}
    columns |= {name: [None if value is None else str(value) for value in seen.first[name]] for name in seen.columns}
    st.dataframe(columns, hide_index=True, key="first-rows", height="content")
    more = f"The first {len(seen.vectors)} of {seen.rows:,} rows." if seen.rows > len(seen.vectors) else ""
    if more:
        st.caption(more)


def show_match(match: ImageMatch | None) -> None:
    """Show how many rows have an image; warn if some have none, because the import refuses them."""
    if match is None:
        return
    text = f"{match.matched:,} of {match.rows:,} rows have an image"
    if match.matched == match.rows:
        st.markdown(f":green[:material/check_circle:] {text}")
        return
    st.warning(f"**{text}.** {REMEDY}", icon=":material/hide_image:")
    st.text(words.plain(match.reason))


def choose_roles(seen: Preview, key: str) -> Roles:
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
