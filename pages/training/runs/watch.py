"""Map of validation samples and the neighbours of six fixed queries, updated at each validation of a run."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dmlcore.storage import validation_frames
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run
from dmlcore.storage.validation_frames import Frame
from pages.shared.server import thumbnails
from pages.shared.state import run_reader
from pages.shared.widgets.test_neighbours import naming
from pages.shared.words import sentences as words
from pages.shared.words.numbers import percent
from pages.training.runs import watch_html
from pages.training.runs.steps import choose_step

FOLLOW = "Follow the newest validation"
IMAGES = "Shows each sample as an image with a border in the colour of its class."


def show(run: Run, status: str) -> None:
    """Show the newest or a chosen validation of a run; nothing if the run recorded none."""
    paths = validation_frames.paths(run.path)
    if not paths:
        return
    with st.container(border=True, key=f"watch-{run.id}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.markdown("**Map during training**", width="content")
            goes_on = status in ("queued", "running")
            step = choose_step(f"watch-step-{run.id}", list(paths), goes_on, FOLLOW, "collapsed")
            images = st.toggle("Images on the map", key=f"watch-images-{run.id}", help=IMAGES)
        try:
            frame = _read(paths[step])
            before = _previous(paths, step, frame)
        except (Unreadable, OSError) as error:
            st.warning(words.plain(error), icon=":material/broken_image:")
            return
        st.caption(_score(run, step, frame))
        name = naming(run)
        address = thumbnails.address(run) if thumbnails.readable(run.spec) else ""
        st.html(watch_html.html(frame, before, step, address, name, images=images and bool(address)))


def _previous(paths: dict[int, Path], step: int, frame: Frame) -> Frame:
    """Return the previous frame, from which the points move; `frame` itself if no previous frame can be read."""
    earlier = [path for recorded, path in paths.items() if recorded < step]
    try:
        before = _read(earlier[-1]) if earlier else frame
    except (Unreadable, OSError):
        return frame
    return before if before.points.shape == frame.points.shape else frame


def _read(path: Path) -> Frame:
    return _frame(path, path.stat().st_mtime_ns)


@st.cache_resource(max_entries=64, show_spinner=False)
def _frame(path: Path, changed: int) -> Frame:
    return validation_frames.read(path)


def _score(run: Run, step: int, frame: Frame) -> str:
    """Return a line with the validation score at a step and the number of correct neighbours."""
    correct = frame.neighbour_labels == frame.labels[frame.queries][:, None]
    steps, values = run_reader.reader().history(run).validation.arrays()
    scores = [float(value) for validated, value in zip(steps, values, strict=True) if validated == step]
    start = f" ({percent(float(values[0]))} at step 0)" if step and len(steps) and steps[0] == 0 else ""
    score = f" · validation MAP@R {percent(scores[-1])}{start}" if scores else ""
    return f"Step {step:,}{score} · {int(correct.sum())} of {correct.size} neighbours of the same class"
