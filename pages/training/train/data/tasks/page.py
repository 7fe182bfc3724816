"""Long work on a data set on the page: its progress, its end, and the buttons that start and cancel it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import streamlit as st

from dmlcore import data
from dmlcore.data import DataError, Dataset, checks
from dmlcore.data.files import sources
from dmlcore.storage import locks
from dmlcore.storage.task import Task, TaskState
from pages.shared.words import sentences as words
from pages.shared.words.numbers import duration
from pages.training.train.data import service as data_service
from pages.training.train.data.service import Where

LOOK = 1.0  # seconds between two looks while it runs


def size(count: float) -> str:
    """Bytes in the unit that suits them, 1 MB being 10^6 as publishers count."""
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= one:
            return f"{count / one:.3g} {unit}"
    return f"{count:.0f} bytes"


def progress(task: Task, key: str, count: Callable[[float], str]) -> bool:
    """Show how far a task is, with a button that cancels it; whether it is at work."""
    busy = task.busy()
    if busy:
        st.fragment(_bar, run_every=LOOK)(task, key, count)
    return busy


def _bar(task: Task, key: str, count: Callable[[float], str]) -> None:
    if not task.busy():
        st.rerun()
    state = task.state() or TaskState("running", "starting")
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(width="stretch"):
            st.progress(min(1.0, state.done / state.total) if state.total else 0.0, _words(state, count))
        st.button("Cancel", key=f"{key}-cancel", icon=":material/stop_circle:", on_click=task.cancel)


def _words(state: TaskState, count: Callable[[float], str]) -> str:
    of = f" of {count(state.total)}" if state.total else ""
    words = f"{state.message.capitalize()}: {count(state.done)}{of}" if state.done or state.total else state.message
    if state.rate > 0:
        words += f", {count(state.rate)} a second"
        if state.total:
            words += f", about {duration((state.total - state.done) / state.rate)} to go"
    return words


def download(name: str) -> None:
    """The button that downloads, with what it costs and what came of the last try; or what to do by hand."""
    source, info = sources.source_of(name), data.describe(name)
    if source is None:
        return
    task = sources.task_of(name)
    if progress(task, f"download-{name}", size):
        return
    if source.urls:
        files = ", ".join(
            f"{file.name} ({size(file.size) if file.size else 'size not stated'})" for file in source.files
        )
        again = task.status() in ("failed", "cancelled", "lost")
        st.markdown(f"From the official address: {files}. Each file is verified by its digest.")
        st.button(
            f"{'Go on with' if again else 'Download'} {info.title}",
            key=f"download-{name}",
            type="primary",
            icon=":material/download:",
            on_click=_start_download,
            args=(name,),
        )
        _ended(task)
        st.caption("Or put the files there by hand:")
    else:
        st.text(source.by_hand)
    if info.folder:
        st.caption("They belong here, packed or unpacked:")
        st.code(str(sources.default_folder()), language=None, wrap_lines=True)
    st.caption("These trees are read:" if len(source.layouts) > 1 else "This tree is read:")
    for layout in source.layouts:
        st.code(layout, language=None)


def _start_download(name: str) -> None:
    try:
        sources.start(name)
    except (DataError, locks.Busy, OSError) as error:
        st.toast(escape(words.plain(error)), icon=":material/error:")


def _ended(task: Task) -> None:
    """How the last try ended, where it did not succeed."""
    state, status = task.state(), task.status()
    if state is None or status not in ("failed", "cancelled", "lost"):
        return
    words = {"failed": "The last try failed", "cancelled": "Cancelled", "lost": "The last try was interrupted"}[status]
    kept = "" if status == "failed" else ": what has arrived is kept, and the next try goes on from there"
    st.badge(words + kept, icon=":material/error:", color="red" if status == "failed" else "gray")
    if status == "failed":
        st.text(state.message)  # may hold names and paths


def check(at: Where, made: Dataset) -> None:
    """Every image decoded: the button, the progress, and what came of it."""
    root = at.root
    task = checks.task_of(made.name, root)
    if progress(task, f"check-{made.name}", "{:,.0f}".format):
        return
    found = checks.result(made.name, root)
    images = "image" if made.image else "sample"
    st.button(
        f"Check every {images}" + (" again" if found else ""),
        key=f"check-{made.name}",
        icon=":material/fact_check:",
        on_click=_start_check,
        args=(made.name, root),
        help="Decodes all of them in a process of its own and looks for the same content in several classes or parts",
    )
    _ended(task)
    if found is None:
        return
    said = checks.verdicts(found, made)
    if found.stamp != data_service.stamp(at):
        st.caption("The files have changed since the last check:")
    if not found.failures:
        st.markdown(f":green[**✓**] All {found.samples:,} {images}s can be read ({found.seconds:.1f} s).")
    for verdict in said:
        st.text(verdict)
    if found.unreadable:
        st.dataframe(
            {"image": [key for key, _ in found.unreadable], "what is wrong": [why for _, why in found.unreadable]},
            key=f"unreadable-{made.name}",
            hide_index=True,
        )


def _start_check(name: str, root: str | None) -> None:
    try:
        checks.start(name, root)
    except (locks.Busy, OSError) as error:
        st.toast(escape(words.plain(error)), icon=":material/error:")
