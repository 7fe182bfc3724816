"""Which folders a link may have this server read: those searched for data, and those that the visitor has named."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dmlcore.data.files import locate
from dmlcore.spec import RunSpec

_FOLDERS = "folders named by the visitor"  # of this session


def unread(spec: RunSpec) -> str | None:
    """The folder a spec of a link would have this server read although nobody here has chosen it; else None.

    Chosen are the folders that are searched for data, with all in them, and those that the visitor has named himself.
    """
    root = spec.data.root
    if root is None or root in st.session_state.get(_FOLDERS, ()):
        return None
    try:
        place = Path(root).expanduser().resolve()
        known = any(place.is_relative_to(folder.resolve()) for folder in locate.search_folders())
    except (OSError, RuntimeError, ValueError):  # a loop of links, ~nobody, NUL
        known = False
    return None if known else root


def choose_folder(root: str) -> None:
    """Note that the visitor has named this folder: links of this session may have it read."""
    st.session_state.setdefault(_FOLDERS, set()).add(root)
