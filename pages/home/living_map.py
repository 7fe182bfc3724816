"""Animated map of test samples: their places from the untrained to the trained network."""

from __future__ import annotations

from base64 import b64encode
from html import escape

import numpy as np

from dmlcore.figures.maps import FEW, STEPS, Sheet
from dmlcore.figures.palette import INK
from dmlcore.typing import Array, Ints

SIDE = 300  # units per side of the map
RADIUS = 3.6
MOST_OTHERS = 500  # largest number of grey points; more would not be distinguishable
SECONDS, TIMES = 5, 3  # duration of the animation, and how often it plays
STYLE = """<style>
.living-map { margin: 0; }
.living-map img { display: block; width: 100%; aspect-ratio: 1; border: 1px solid var(--edge);
  border-radius: var(--corner); }
</style>"""


def html(sheet: Sheet, steps: tuple[int, ...]) -> str:
    """Return HTML with a map that plays its frames; `steps` holds the training step of each frame.

    With reduced motion, and after the last repetition, the map shows its last frame.
    """
    classes = coloured(sheet)
    label = (
        f"map of {len(sheet.group):,} test samples, from the untrained network to step {steps[-1]:,}: "
        f"{len(classes)} of {len(sheet.labels)} classes in colour"
    )
    # use a data URL, because st.html removes svg elements
    source = f"data:image/svg+xml;base64,{b64encode(_drawing(sheet, steps).encode()).decode()}"
    return f'{STYLE}<figure class="living-map"><img src="{source}" alt="{escape(label)}"></figure>'


def coloured(sheet: Sheet) -> Ints:
    """Return the indices in `sheet.labels` of the classes to colour, evenly spaced."""
    return np.unique(np.linspace(0, len(sheet.labels) - 1, len(FEW) - 1).astype(np.int64))


def _drawing(sheet: Sheet, steps: tuple[int, ...]) -> str:
    classes = coloured(sheet)
    at = sheet.frames.astype(np.float64) / STEPS * (SIDE - 8 * RADIUS) + 4 * RADIUS
    places = np.rint(np.stack([at[..., 0], SIDE - at[..., 1]], axis=-1)).astype(np.int64)  # (S, n, 2)
    rest = np.flatnonzero(~np.isin(sheet.group, classes))
    groups = [(rest[:: max(1, -(-len(rest) // MOST_OTHERS))], INK[False]["missing"], 0.4)]
    groups += [(np.flatnonzero(sheet.group == c), FEW[k], 1.0) for k, c in enumerate(classes)]
    moving, still = (
        "".join(_path(places[:, rows], colour, opacity, moves) for rows, colour, opacity in groups)
        for moves in (True, False)
    )
    words = [f"after {step:,} steps" if step else "untrained" for step in steps]
    order = [0, *range(len(steps)), len(steps) - 1]  # frame at each key time
    shown = "".join(
        f'<text x="10" y="20" opacity="0">{text}<animate attributeName="opacity" calcMode="discrete" '
        f'{_timing(len(steps))} values="{";".join(str(int(frame == k)) for frame in order)}"/></text>'
        for k, text in enumerate(words)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}" fill="none" stroke-linecap="round" '
        f'stroke-width="{2 * RADIUS}"><style>text{{font:600 12px system-ui,sans-serif;fill:{INK[False]["missing"]}}}'
        ".still{display:none}@media(prefers-reduced-motion:reduce){.still{display:inline}.moving{display:none}}</style>"
        f'<g class="moving">{moving}{shown}</g><g class="still">{still}<text x="10" y="20">{words[-1]}</text></g></svg>'
    )


def _timing(frames: int) -> str:
    """Return attributes that hold the first frame, pass through the others and hold the last one."""
    times = [0.0, *np.linspace(0.15, 0.75, frames).tolist(), 1.0]
    keys = ";".join(f"{time:.3f}" for time in times)
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
