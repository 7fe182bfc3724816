"""Map of validation samples and the neighbours of six fixed queries, updated at each validation of a run.

The map consists of positioned HTML elements; a CSS animation moves the points from their positions in the previous
frame to those in the new one.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

import numpy as np
import streamlit as st

from dmlcore.figures.maps import palette
from dmlcore.storage import validation_frames
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import Run
from dmlcore.storage.validation_frames import Frame
from dmlcore.typing import Floats, Singles
from pages.shared.server import thumbnails
from pages.shared.state import run_reader
from pages.shared.widgets.neighbour_grid import Neighbour, Row, Tile
from pages.shared.widgets.neighbour_grid import html as grid_html
from pages.shared.widgets.test_neighbours import naming
from pages.shared.words import sentences as words
from pages.shared.words.numbers import percent
from pages.training.runs.steps import choose_step

FOLLOW = "Follow the newest validation"
IMAGES = "Shows each sample as an image with a border in the colour of its class."

MOST_NAMED = 12  # largest number of classes with a legend
UNNAMED = "One colour per class; hover over a sample for its name."
MARGIN = 0.04  # empty margin on each side of the map, as a share of its width
STYLE = """<style>
.watch { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: 28px; align-items: start; }
.watch .plane { position: relative; aspect-ratio: 1; max-width: 480px; border-radius: 8px;
  background: rgb(128 128 128 / .08); overflow: hidden; }
.watch .plane > * { position: absolute; left: var(--x); top: var(--y); transform: translate(-50%, -50%);
  animation: watch-move .7s ease-out; }
@keyframes watch-move { from { left: var(--u); top: var(--v); } }
@media (prefers-reduced-motion: reduce) { .watch .plane > * { animation: none; } }
.watch .plane i { width: 8px; height: 8px; border-radius: 50%; background: var(--c);
  box-shadow: 0 0 0 .5px var(--page); }
.watch .plane img { width: 20px; height: 20px; object-fit: contain; border: 2px solid var(--c); border-radius: 3px;
  background: rgb(128 128 128 / .3); }
.watch .plane .query { z-index: 1; width: 34px; height: 34px; border-width: 3px; border-radius: 5px;
  box-shadow: 0 0 0 2px rgb(255 255 255 / .9), 0 1px 6px rgb(0 0 0 / .5); }
.watch .plane i.query { width: 14px; height: 14px; border-radius: 50%; }
.watch .names { display: flex; flex-wrap: wrap; gap: 2px 14px; margin-top: 8px; font-size: 13px; }
.watch .names b { display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: 5px;
  background: var(--c); }
.watch .neighbours { display: grid; gap: 0 28px;
  grid-template-columns: repeat(auto-fill, minmax(min(330px, 100%), 1fr)); }
.watch .neighbours .row { border-top: 0; padding: 8px 0; gap: 12px; flex-direction: row; }
.watch .neighbours figure.query { width: 76px; }
.watch .neighbours .found { grid-template-columns: repeat(5, minmax(0, 1fr)); gap: 8px; }
@media (max-width: 800px) { .watch { grid-template-columns: minmax(0, 1fr); }
  .watch .neighbours { grid-template-columns: minmax(0, 1fr); } }
</style>"""


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
        st.html(html(frame, before, step, address, name, images=images and bool(address)))


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


def html(
    frame: Frame, before: Frame, step: int, address: str, name: Callable[[int], str], *, images: bool = False
) -> str:
    """Return the HTML of a frame.

    Args:
        frame: Frame to show.
        before: Previous frame, with points of the same shape, from which the points move.
        step: Training step of the frame.
        address: URL prefix of the images, to which the index of a sample is appended; "" if there are no images, so
            that only points are shown.
        name: Function that maps labels to class names.
        images: True to show all samples on the map as images instead of points.
    """
    classes = np.unique(frame.labels)
    colours = dict(zip(classes.tolist(), palette(len(classes)), strict=True))
    plane = _plane(frame, before, address, name, colours, images=images)
    about = f"Map of {len(frame.labels)} validation samples of {len(classes)} classes at step {step:,}"
    named = "".join(f'<span><b style="--c:{colours[at]}"></b>{escape(name(at))}</span>' for at in colours)
    legend = f'<div class="names">{named if len(classes) <= MOST_NAMED else UNNAMED}</div>'
    grid = grid_html(_rows(frame, address, name), address, str) if address else ""
    return (
        f'{STYLE}<div class="watch" data-step="{step}"><div><div class="plane" role="img" aria-label="{about}">{plane}'
        f"</div>{legend}</div><div>{grid}</div></div>"
    )


def _plane(
    frame: Frame, before: Frame, address: str, name: Callable[[int], str], colours: dict[int, str], *, images: bool
) -> str:
    reach, queries = float(frame.reach), set(frame.queries.tolist())
    end, start = _percentages(frame.points, reach), _percentages(before.points, reach)
    elements = []
    for row, (index, label) in enumerate(zip(frame.indices.tolist(), frame.labels.tolist(), strict=True)):
        place = f"--x:{end[row, 0]}%;--y:{end[row, 1]}%;--u:{start[row, 0]}%;--v:{start[row, 1]}%"
        about = f'title="{escape(name(label))}" style="--c:{colours[label]};{place}"'
        about += ' class="query"' if row in queries else ""
        shown = address and (images or row in queries)
        elements.append(f'<img src="{address}{index}" alt="" {about}>' if shown else f"<i {about}></i>")
    return "".join(elements)


def _percentages(points: Singles, reach: float) -> Floats:
    """Return positions (n, 2) in percent of the square from the left and from the top, with one decimal."""
    shares = points.astype(np.float64) / (reach or 1.0) * (0.5 - MARGIN) * [1, -1] + 0.5
    return np.round(100 * shares, 1)


def _rows(frame: Frame, address: str, name: Callable[[int], str]) -> list[Row]:
    """Return the queries with their neighbours; tiles have no links, because no page shows validation samples."""
    rows: list[Row] = []
    for row, near, labels in zip(frame.queries, frame.neighbours, frame.neighbour_labels, strict=True):
        index, own = int(frame.indices[row]), int(frame.labels[row])
        tiles = [
            Neighbour(at, name(label), src=f"{address}{at}", right=label == own)
            for at, label in zip(near.tolist(), labels.tolist(), strict=True)
        ]
        rows.append((Tile(index, name(own), src=f"{address}{index}"), tiles))
    return rows
