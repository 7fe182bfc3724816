"""Two small maps side by side: the test samples of a run before and after training."""

from __future__ import annotations

from base64 import b64encode
from html import escape

import numpy as np

from dmlcore.figures.maps import FEW, STEPS, Sheet
from dmlcore.typing import Array, Ints

SIDE = 300  # units per side of a map
RADIUS = 4
MOST_OTHERS = 700  # largest number of grey points in a map; more would not be distinguishable
STYLE = """<style>
.two-maps { display: grid; grid-template-columns: 1fr 1fr; gap: 10px; }
.two-maps figure { margin: 0; }
.two-maps img { display: block; width: 100%; aspect-ratio: 1; border: 1px solid rgb(128 128 128 / .35);
  border-radius: 6px; }
.two-maps figcaption { margin-top: 4px; font-size: 13px; text-align: center; }
</style>"""


def html(sheet: Sheet, steps: tuple[int, ...]) -> str:
    """Return HTML with the first and the last frame of a map; `steps` holds the training step of each frame."""
    before, after = (_figure(sheet, k, f"after {steps[k]:,} steps" if steps[k] else "untrained") for k in (0, -1))
    return f'{STYLE}<div class="two-maps">{before}{after}</div>'


def coloured(sheet: Sheet) -> Ints:
    """Return the indices in `sheet.labels` of the classes to colour, evenly spaced."""
    return np.unique(np.linspace(0, len(sheet.labels) - 1, len(FEW) - 1).astype(np.int64))


def _figure(sheet: Sheet, frame: int, words: str) -> str:
    classes = coloured(sheet)
    at = sheet.frames[frame].astype(np.float64) / STEPS * (SIDE - 4 * RADIUS) + 2 * RADIUS
    places = np.rint(np.stack([at[:, 0], SIDE - at[:, 1]], axis=1)).astype(np.int64)
    rest = places[~np.isin(sheet.group, classes)]
    paths = _path(rest[:: max(1, -(-len(rest) // MOST_OTHERS))], "var(--missing)", 0.45)
    paths += "".join(_path(places[sheet.group == c], FEW[k], 1.0) for k, c in enumerate(classes))
    shown = f"{len(classes)} of {len(sheet.labels)} classes in colour"
    label = escape(f"map of {len(places):,} test samples, {words}: {shown}")
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}">{paths}</svg>'
    # use a data URL, because st.html removes svg elements
    source = f"data:image/svg+xml;base64,{b64encode(drawing.encode()).decode()}"
    return f'<figure><img src="{source}" alt="{label}"><figcaption>{escape(words)}</figcaption></figure>'


def _path(places: Array, colour: str, opacity: float) -> str:
    """Return an SVG path that draws each point as a round dot, which is a line of length zero with round caps."""
    dots = "".join(f"M{x} {y}h0" for x, y in places.tolist())
    look = (
        f'fill="none" stroke-linecap="round" stroke="{colour}" stroke-width="{2 * RADIUS}" stroke-opacity="{opacity}"'
    )
    return f'<path d="{dots}" {look}/>'
