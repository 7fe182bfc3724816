"""First rows of the files, and the choice of columns by role."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import streamlit as st

from dmlcore.data.embedding_sets.preview import Preview
from dmlcore.data.embedding_sets.roles import Roles

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
    if chosen["label"] is None:
        st.warning(NO_LABELS, icon=":material/label_off:")
    return Roles(**chosen)
