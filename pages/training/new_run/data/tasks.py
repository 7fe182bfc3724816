"""Panels of the background tasks on a data set (download and check): buttons, progress and results."""

from __future__ import annotations

import re

import streamlit as st

from dmlcore import data
from dmlcore.data import Dataset, checks
from dmlcore.data.files import sources
from pages.shared.widgets import waiting
from pages.shared.widgets.error_boundary import attempt
from pages.training.new_run.data import service as data_service
from pages.training.new_run.data.service import DataKey


def size(count: float) -> str:
    """Format a number of bytes with a decimal unit (1 MB = 10^6 bytes), as publishers do."""
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= one:
            return f"{count / one:.3g} {unit}"
    return f"{count:.0f} bytes"


def download(name: str) -> None:
    """Show the download button with file sizes and the last error, and instructions for a manual download.

    While a download is running, only its progress is shown.
    """
    source, info = sources.source_of(name), data.describe(name)
    if source is None:
        return
    task = sources.task_of(name)
    if waiting.wait(task, f"download-{name}", lambda state: waiting.counted(state, size)):
        return
    if source.urls:
        files = ", ".join(
            f"{file.name} ({size(file.size) if file.size else 'size not stated'})" for file in source.files
        )
        again = task.status() in ("failed", "cancelled", "lost")
        st.markdown(f"From the official address: {files}. Each file is verified by its digest.")
        st.button(
            f"{'Resume downloading' if again else 'Download'} {info.title}",
            key=f"download-{name}",
            type="primary",
            icon=":material/download:",
            on_click=attempt,
            args=(sources.start, name),
        )
        waiting.ended(task)
        st.caption("Or download the files manually:")
    else:
        st.text(source.by_hand)
    if info.folder:
        st.caption("Put them here, packed or unpacked:")
        st.code(str(sources.default_folder()), language=None, wrap_lines=True)
    layouts(name)


def layouts(name: str) -> None:
    """Show the folder layouts in which the files of a data set can be stored."""
    source = sources.source_of(name)
    if source is None:
        return
    st.caption("Any of these folder layouts works:" if len(source.layouts) > 1 else "Folder layout:")
    for layout in source.layouts:
        # the remark behind a folder follows at once, and wraps in a narrow window
        st.code(re.sub(r"(?<=\S) {2,}", "  ", layout), language=None, wrap_lines=True)


def check(at: DataKey, made: Dataset) -> None:
    """Show the button, progress and result of the background check that decodes every image."""
    root = at.root
    task = checks.task_of(made.name, root)
    if waiting.wait(task, f"check-{made.name}", lambda state: waiting.counted(state, "{:,.0f}".format)):
        return
    result = checks.result(made.name, root)
    images = "image" if made.image else "sample"
    st.button(
        f"Check every {images}" + (" again" if result else ""),
        key=f"check-{made.name}",
        icon=":material/fact_check:",
        on_click=attempt,
        args=(checks.start, made.name, root),
        help="Decodes every file in the background and searches for duplicates across classes and splits",
    )
    waiting.ended(task)
    if result is None:
        return
    verdicts = checks.verdicts(result, made)
    if result.stamp != data_service.fingerprint(at):
        st.caption("The files have changed since the last check:")
    if not result.failures:
        st.markdown(f":green[**✓**] All {result.samples:,} {images}s can be read ({result.seconds:.1f} s).")
    for verdict in verdicts:
        st.text(verdict)
    if result.unreadable:
        st.dataframe(
            {"image": [key for key, _ in result.unreadable], "error": [why for _, why in result.unreadable]},
            key=f"unreadable-{made.name}",
            hide_index=True,
        )
