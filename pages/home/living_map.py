"""Animated map of samples: their places from the untrained to the trained network, as dots or as images."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import numpy as np

from dmlcore.figures.maps import FEW, STEPS, Sheet
from dmlcore.figures.palette import INK
from dmlcore.inspection.maps import maps, trajectory
from dmlcore.inspection.neighbours import TestNeighbours
from dmlcore.storage import validation_frames
from dmlcore.storage.runs import Run
from dmlcore.typing import Array, Ints

SIDE = 300  # units per side of the map
RADIUS = 3.6
MOST_OTHERS = 500  # largest number of grey points; more would not be distinguishable
MOST_IMAGES = 6  # largest number of images per coloured class
MOST_FRAMES = 9
SECONDS, TIMES = 5, 3  # duration of the animation, and how often it plays
STYLE = f"""<style>
.living-map {{ position: relative; margin: 0; }}
.living-map .map {{ display: block; width: 100%; aspect-ratio: 1; border: 1px solid var(--edge);
  border-radius: var(--corner); }}
.living-map .sample {{ position: absolute; width: 34px; height: 34px; margin: -17px 0 0 -17px; object-fit: cover;
  border: 2px solid var(--c); border-radius: 50%; animation: living-map {SECONDS}s linear {TIMES}; }}
.living-map .sample:hover {{ z-index: 1; scale: 2.6; border-width: 1px; }}
.living-map .still {{ display: none; }}
.living-map-classes {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(135px, 1fr)); gap: 0 var(--s5);
  margin-top: var(--s3); font-size: var(--small); }}
.living-map-classes i {{ display: inline-block; width: 10px; height: 10px; margin-right: var(--s3);
  border: 2px solid var(--c); border-radius: 50%; }}
@media (prefers-reduced-motion: reduce) {{ .living-map .sample {{ animation: none; }}
  .living-map .still {{ display: block; }} .living-map .moving {{ display: none; }} }}
</style>"""


@dataclass(frozen=True, eq=False)
class Movement:
    """Places of the samples of a split at several training steps; `steps` holds the step of each frame of `sheet`."""

    sheet: Sheet
    steps: tuple[int, ...]
    split: str


def read_movement(run: Run, test: TestNeighbours) -> Movement | None:
    """Return the movement of the samples of a run in training, None if it recorded none.

    A map over training that was computed for the test split is preferred to the maps that every training run records
    at its validations.

    Raises:
        Unreadable: If a file of the run is damaged.
        ValueError: If the samples of two frames differ.
    """
    made = maps.list_settings(run)
    if path := trajectory.find(run, made[0]) if made else None:
        frames = trajectory.read(path)
        return Movement(Sheet.of(frames.points, test.labels, test.indices), tuple(frames.steps.tolist()), "test")
    recorded = validation_frames.paths(run.path)
    if len(recorded) < 2:
        return None
    steps = np.array([*recorded])[np.unique(np.linspace(0, len(recorded) - 1, MOST_FRAMES).astype(int))].tolist()
    seen = [validation_frames.read(recorded[step]) for step in steps]
    points = np.stack([frame.points for frame in seen])
    return Movement(Sheet.of(points, seen[-1].labels, seen[-1].indices), tuple(steps), "validation")


def html(movement: Movement, address: str = "", name: Callable[[int], str] = str) -> str:
    """Return HTML with a map that plays its frames; with reduced motion, and after the last repetition, it shows the
    last frame.

    Args:
        movement: Samples to show, with their places.
        address: URL prefix of the images, to which the index of a sample is appended; "" draws dots only. With images,
            a list below the map names the coloured classes.
        name: Function that maps labels to class names.
    """
    sheet, steps = movement.sheet, movement.steps
    classes = coloured(sheet)
    about = (
        f"map of {len(sheet.group):,} {movement.split} samples, from the untrained network to step {steps[-1]:,}: "
        f"{len(classes)} of {len(sheet.labels)} classes in colour"
    )
    at = sheet.frames.astype(np.float64) / STEPS * (SIDE - 8 * RADIUS) + 4 * RADIUS
    places = np.rint(np.stack([at[..., 0], SIDE - at[..., 1]], axis=-1)).astype(np.int64)  # (S, n, 2)
    members = [np.flatnonzero(sheet.group == c) for c in classes]
    pictured = [rows[_spread(len(rows), MOST_IMAGES)] if address else rows[:0] for rows in members]
    dots = [np.setdiff1d(rows, drawn) for rows, drawn in zip(members, pictured, strict=True)]
    # use data URLs, because st.html removes svg elements; and two, as SVG images cannot tell that motion is reduced
    maps_ = "".join(
        f'<img class="map {kind}" alt="{escape(about)}" src="data:image/svg+xml;base64,'
        f'{b64encode(_drawing(sheet, places, dots, steps, moves=kind == "moving").encode()).decode()}">'
        for kind in ("moving", "still")
    )
    samples = "".join(
        f'<img class="sample" src="{address}{sheet.indices[row]}" alt="" '
        f'title="{escape(name(int(sheet.labels[c])))}" style="--c:{FEW[k]};{_variables(places[:, row])}">'
        for k, (c, rows) in enumerate(zip(classes, pictured, strict=True))
        for row in rows
    )
    named = "".join(
        f'<span><i style="--c:{FEW[k]}"></i>{escape(name(int(sheet.labels[c])))}</span>' for k, c in enumerate(classes)
    )
    legend = f'<div class="living-map-classes">{named}</div>' if address else ""
    return f'{STYLE}{_keyframes(len(steps))}<figure class="living-map">{maps_}{samples}</figure>{legend}'


def coloured(sheet: Sheet) -> Ints:
    """Return the indices in `sheet.labels` of the classes to colour, evenly spaced."""
    return _spread(len(sheet.labels), len(FEW) - 1)


def legend(sheet: Sheet, *, images: bool) -> str:
    """Return what the images, if there are any, and the dots of a map show, as part of a sentence."""
    classes = coloured(sheet)
    words = [f"{len(classes)} classes are {'shown as images' if images else 'coloured'}"]
    if images and sheet.counts[classes].max() > MOST_IMAGES:
        words.append("coloured dots are further images of these classes")
    if len(classes) < len(sheet.labels):
        words.append("grey dots are other classes")
    return "; ".join(words)


def _spread(count: int, most: int) -> Ints:
    """Return at most `most` of the numbers 0..count - 1, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, most).astype(np.int64)) if count else np.zeros(0, np.int64)


def _times(frames: int) -> list[float]:
    """Return the times 0..1 at which the first frame begins, each of the frames is reached, and the last one ends."""
    return [0.0, *np.linspace(0.15, 0.75, frames).tolist(), 1.0]


def _variables(places: Array) -> str:
    """Return the places (S, 2) of one sample as CSS variables, and the last one as its place at rest."""
    shares = [(f"{100 * x / SIDE:.1f}%", f"{100 * y / SIDE:.1f}%") for x, y in places.tolist()]
    variables = ";".join(f"--x{k}:{x};--y{k}:{y}" for k, (x, y) in enumerate(shares))
    return f"left:{shares[-1][0]};top:{shares[-1][1]};{variables}"


def _keyframes(frames: int) -> str:
    """Return a style sheet with the animation that moves a sample through the places of `_variables`."""
    order = [0, *range(frames), frames - 1]
    rules = "".join(
        f"{100 * time:.1f}%{{left:var(--x{k});top:var(--y{k})}}" for time, k in zip(_times(frames), order, strict=True)
    )
    return f"<style>@keyframes living-map{{{rules}}}</style>"


def _drawing(sheet: Sheet, places: Array, dots: list[Ints], steps: tuple[int, ...], *, moves: bool) -> str:
    """Return the map as SVG: a grey dot per sample of other classes, and `dots` of each coloured class."""
    rest = np.flatnonzero(~np.isin(sheet.group, coloured(sheet)))
    groups = [(rest[:: max(1, -(-len(rest) // MOST_OTHERS))], INK[False]["missing"], 0.4)]
    groups += [(rows, FEW[k], 1.0) for k, rows in enumerate(dots)]
    paths = "".join(_path(places[:, rows], colour, opacity, moves) for rows, colour, opacity in groups)
    words = [f"after {step:,} steps" if step else "untrained" for step in steps]
    order = [0, *range(len(steps)), len(steps) - 1]  # frame at each key time
    if moves:
        texts = "".join(
            f'<text x="10" y="20" opacity="0">{text}<animate attributeName="opacity" calcMode="discrete" '
            f'{_timing(len(steps))} values="{";".join(str(int(frame == k)) for frame in order)}"/></text>'
            for k, text in enumerate(words)
        )
    else:
        texts = f'<text x="10" y="20">{words[-1]}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}" fill="none" stroke-linecap="round" '
        f'stroke-width="{2 * RADIUS}"><style>text{{font:600 12px system-ui,sans-serif;fill:{INK[False]["missing"]}}}'
        f"</style>{paths}{texts}</svg>"
    )


def _timing(frames: int) -> str:
    """Return attributes that hold the first frame, pass through the others and hold the last one."""
    keys = ";".join(f"{time:.3f}" for time in _times(frames))
    return f'dur="{SECONDS}s" repeatCount="{TIMES}" fill="freeze" keyTimes="{keys}"'


def _path(places: Array, colour: str, opacity: float, moves: bool) -> str:
    """Return an SVG path that draws each point as a round dot, which is a line of length zero with round caps.

    Args:
        places: Points of each frame, (S, m, 2).
        colour: Colour of the dots.
        opacity: Opacity of the dots.
        moves: Animate the dots through the frames.
    """
    frames = ["".join(f"M{x} {y}h0" for x, y in frame) for frame in places.tolist()]
    play = (
        f'<animate attributeName="d" {_timing(len(frames))} values="{";".join([frames[0], *frames, frames[-1]])}"/>'
        if moves
        else ""
    )
    return f'<path d="{frames[-1]}" stroke="{colour}" stroke-opacity="{opacity}">{play}</path>'
