"""Folders that a link may make this server read: those on the search path for data, and those the visitor entered."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dmlcore.data.files import locate
from dmlcore.spec import RunSpec

_FOLDERS = "folders named by the visitor"  # session key


def unread(spec: RunSpec) -> str | None:
    """Return the data folder of a spec if the visitor has not allowed the server to read it, else None.

    Folders on the search path (with their contents) and folders that the visitor entered in this session are allowed.
    """
    root = spec.data.root
    if root is None or root in st.session_state.get(_FOLDERS, ()):
        return None
    try:
        place = Path(root).expanduser().resolve()
        known = any(place.is_relative_to(folder.resolve()) for folder in locate.search_folders())
    except (OSError, RuntimeError, ValueError):  # the path contains a symlink loop, an unknown ~user, or a NUL byte
        known = False
    return None if known else root


def choose_folder(root: str) -> None:
    """Allow reading a folder that the visitor entered, also for links opened later in this session."""
    st.session_state.setdefault(_FOLDERS, set()).add(root)
