"""Layers of a force-field figure.

Each function draws one element of the arrays of `field_arrays`, such as arrows or boundaries, into matplotlib axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from dmlcore.figures.field_arrays import View, polylines
from dmlcore.figures.strokes import (
    ARROWS,
    INK,
    arrow_nodes,
    arrow_shaft,
    colour_top,
    compressed,
    draw_arrow,
    draw_bar,
    draw_frame,
    draw_image,
    draw_needles,
    draw_text,
    median_force,
)
from dmlcore.geometry import Probe
from dmlcore.geometry.hardness import Hardness
from dmlcore.typing import Arrays, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

Shade = Literal["energy", "raw", "force", "none"]

# length of an arrow shaft in half widths of the view: minimum, and the most that a strong force adds to it
LEAST, MOST = 16 / 320, 150 / 320
BOUNDARIES: dict[str, Any] = {"outer": "-", "inner": (0, (4, 2.5))}  # raw = 0, raw = m2


def draw_hardness(axes: Axes, arrays: Arrays, hardness: Hardness, dark: bool) -> None:
    """Draw the circle that separates hard from semi-hard negatives (Karaman 2021, Fig. 2.5), and label the regions."""
    if hardness.radius is not None:
        draw_rings(axes, arrays["points"][:1], hardness.radius, dark)
    for name, at in hardness.names:
        draw_text(axes, at, name, INK[dark]["disc"], dark, va="center")


def draw_plane(axes: Axes, view: View, dark: bool) -> None:
    """Draw frame, grid and ticks of the square `view` = (centre x, centre y, half width)."""
    x, y, half = view
    ink = INK[dark]
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal", facecolor=ink["page"])
    axes.grid(True, color=ink["grid"], linewidth=0.6)
    draw_frame(axes, dark)


def boundary_words(arrays: Arrays, prefixes: Sequence[str] = ("",)) -> list[str]:
    """Return the caption entries that explain the boundary lines and the hatching, if these are drawn.

    Args:
        arrays: Arrays of one or several fields.
        prefixes: Prefix of the array names of each field.
    """
    words = [("solid line: loss = 0", "outer"), ("dashed: upper clamp", "inner")]
    drawn = [text for text, name in words if any(len(arrays.get(prefix + name, ())) for prefix in prefixes)]
    everywhere = all(arrays[prefix + "active"].all() for prefix in prefixes if prefix + "active" in arrays)
    return drawn if everywhere else [*drawn, "hatched: no force"]


def draw_heat(figure: Figure, axes: Axes, arrays: Arrays, shade: Shade, m2: float, dark: bool, *, bar: bool) -> float:
    """Draw the quantity `shade` as a heat map, with a colour bar if `bar`, and return the upper limit of its scale."""
    strength = np.linalg.norm(arrays["force"], axis=-1)
    values = strength if shade == "force" else arrays[shade]
    shown = np.abs(values) if shade == "raw" else values
    top = colour_top(
        shown, np.isfinite(shown) if shade == "raw" else arrays["active"], m2 if shade == "energy" else math.inf
    )
    image = draw_image(axes, arrays["x"], arrays["y"], values, top, dark, signed=shade == "raw")
    if bar:
        name = {"energy": "loss", "raw": "loss before the clamp", "force": "force"}[shade]
        draw_bar(figure, axes, image, name, dark, ends="both" if shade == "raw" else "max")
    return top


def _above(raw: Floats, level: float) -> Floats:
    """Return arcsinh((raw - level) / 0.1); raw - level is first clipped to ±1e9, so that infinities become finite."""
    return np.arcsinh(np.clip(raw - level, -1e9, 1e9) / 0.1)


def draw_region(axes: Axes, arrays: Arrays, m2: float, dark: bool) -> None:
    """Draw the active region 0 < raw < m2, where raw is the loss before the clamp.

    The outside is hatched, and the boundaries are drawn as lines.
    """
    draw_inactive(axes, arrays["x"], arrays["y"], arrays["raw"], m2, dark)
    draw_boundaries(axes, arrays, dark)


def draw_inactive(
    axes: Axes, x: Floats, y: Floats, raw: Floats, m2: float, dark: bool, clip: Patch | None = None
) -> None:
    """Hatch the area where the loss is clamped because `raw` (H, W) is below 0 or above m2.

    `raw` is the loss before the clamp on the grid x (W,), y (H,). `clip` is a shape outside which nothing is hatched.
    """
    ink, far = INK[dark], 50.0  # arcsinh(1e10) = 23.7
    levels = [([-far, 0.0], _above(raw, 0.0))]
    if math.isfinite(m2):
        levels.append(([0.0, far], _above(raw, m2)))
    for between, values in levels:
        if (values >= between[0]).any() and (values <= between[1]).any():
            hatched = axes.contourf(x, y, values, levels=between, colors=[ink["veil"]], hatches=["////"], zorder=1)
            hatched.set(edgecolor=ink["hatch"], linewidth=0.0, hatch_linewidth=0.5)
            if clip is not None:
                hatched.set_clip_path(clip)


def draw_boundaries(axes: Axes, arrays: Arrays, dark: bool, pattern: str = "{}") -> None:
    """Draw the polylines "outer" solid and "inner" dashed; `pattern` is the format string of their array names."""
    for name, dashes in BOUNDARIES.items():
        for line in polylines(arrays, pattern.format(name)):
            axes.plot(*line.T, color=INK[dark]["text"], linewidth=1.2, linestyle=dashes, zorder=2)


def draw_contours(axes: Axes, arrays: Arrays, which: str, m2: float, dark: bool) -> None:
    """Draw about ten labelled equipotential lines of the "raw" loss, or of the "clamped" loss between 0 and m2."""
    values = arrays["raw"] if which == "raw" else arrays["energy"]
    inside = values[arrays["active"]] if which == "clamped" else values[np.isfinite(values)]
    if not inside.size or np.ptp(inside) == 0:
        return
    from matplotlib.ticker import MaxNLocator

    low, high = np.percentile(inside, [1, 97])
    levels = [v for v in MaxNLocator(11).tick_values(low, high) if which == "raw" or 0 < v < m2]
    if levels:
        finite = np.clip(values, inside.min(), inside.max())
        lines = axes.contour(
            arrays["x"], arrays["y"], finite, levels=levels, colors=[INK[dark]["arrow"]], linewidths=0.6, zorder=2
        )
        axes.clabel(lines, fontsize=6, inline_spacing=2)


def draw_rings(axes: Axes, centres: Floats, radius: float, dark: bool) -> None:
    """Draw a dotted circle around each of the centres (m, 2)."""
    from matplotlib.patches import Circle

    look: dict[str, Any] = {"fill": False, "edgecolor": INK[dark]["disc"], "linewidth": 1.2, "linestyle": (0, (1.5, 2))}
    for at in centres:
        axes.add_patch(Circle(tuple(at), radius, **look, zorder=3))


def draw_streams(axes: Axes, arrays: Arrays, dark: bool) -> None:
    """Draw streamlines of the force within the active region."""
    force = np.where(arrays["active"][..., None], arrays["force"], np.nan)
    if arrays["active"].any():
        axes.streamplot(
            arrays["x"], arrays["y"], force[..., 0], force[..., 1],
            color=INK[dark]["arrow"], linewidth=0.7, density=1.3, arrowsize=0.7, zorder=3,
        )  # fmt: skip


def draw_arrows(axes: Axes, arrays: Arrays, view: View, dark: bool, reference: float | None = None) -> None:
    """Draw arrows in the direction of the force, with length |F| / (|F| + reference) relative to the arrow spacing.

    The bounded length keeps a diverging repulsion from hiding all other arrows. The reference is the median of the
    active forces by default.
    """
    nodes = arrow_nodes(len(arrays["x"]))
    if reference is None:
        reference = median_force(np.linalg.norm(arrays["force"], axis=-1), arrays["active"])
    shaft = 1.9 * view[2] / ARROWS * compressed(arrays["force"][np.ix_(nodes, nodes)], reference)
    draw_needles(axes, arrays["x"][nodes], arrays["y"][nodes], shaft, dark)


def draw_edges(axes: Axes, arrays: Arrays, dark: bool) -> None:
    """Draw the edges of the triplet: a-p solid, a-n and p-n dashed."""
    ink, (a, p, n) = INK[dark], arrays["points"]
    for start, end, colour, dashes in ((a, p, "positive", "-"), (a, n, "negative", "--"), (p, n, "negative", "--")):
        axes.plot(*np.stack([start, end]).T, color=ink[colour], linewidth=1.0, linestyle=dashes, zorder=4)


def draw_resultants(axes: Axes, arrays: Arrays, view: View, dark: bool) -> None:
    """Draw the force on each point as an arrow labelled with its magnitude; zero and infinite forces are left out.

    Labels avoid each other and the points where there is room.
    """
    ink, half, centre = INK[dark], view[2], np.array(view[:2])
    taken = list(arrays["points"])  # positions that labels drawn later must avoid
    room = np.array([1.0, 0.5]) / cast("Figure", axes.figure).get_figwidth() * half
    for at, force in zip(arrays["points"], arrays["forces"], strict=True):
        shaft = arrow_shaft(force, LEAST * half, MOST * half)
        if not shaft.any():
            continue
        tip = at + shaft
        draw_arrow(axes, at, tip, ink["force"], ink["rim"], 2.2)
        taken.append(free_place(tip, force / np.linalg.norm(force), taken, room, centre, half))
        draw_text(axes, taken[-1], f"{np.linalg.norm(force):.3g}", ink["forceText"], dark, va="center")


def free_place(tip: Floats, unit: Floats, taken: Sequence[Floats], room: Floats, centre: Floats, half: float) -> Floats:
    """Return the position (2,) for an arrow's label: beyond the tip, or to the side if that position is occupied.

    Args:
        tip: Tip of the arrow, shape (2,).
        unit: Direction of the arrow, shape (2,).
        taken: Occupied positions, shape (2,) each.
        room: Width and height of a label, shape (2,).
        centre: Centre of the view, shape (2,).
        half: Half width of the view.
    """
    aside = np.array([-unit[1], unit[0]])
    ways = (unit, aside, -aside, unit + 1.5 * aside, unit - 1.5 * aside, 2 * unit)
    places = [np.clip(tip + 0.09 * half * way, centre - 0.92 * half, centre + 0.92 * half) for way in ways]
    free = [min(np.abs((place - other) / room).max() for other in taken) for place in places]
    return next((x for x, distance in zip(places, free, strict=True) if distance > 1), places[int(np.argmax(free))])


def draw_parts(axes: Axes, arrays: Arrays, view: View, dark: bool) -> None:
    """Draw the components of each force along the triplet's edges, and the remainder as a dotted arrow.

    Components along a-p have the colour of the positive, those along a-n and p-n the colour of the negative.
    """
    ink = INK[dark]
    for i, at in enumerate(arrays["points"]):
        for part, (pair, colour, style) in enumerate(
            (("ap", "positive", "-"), ("an", "negative", "-"), ("pn", "negative", "-"), ("", "text", ":"))
        ):
            force = arrays["residuals"][i] if not pair else arrays["parts"][i, part]
            shaft = arrow_shaft(force, LEAST * view[2], MOST * view[2])
            if shaft.any():
                draw_arrow(axes, at, at + shaft, ink[colour], ink["rim"], 1.2, style)


def draw_points(
    axes: Axes, arrays: Arrays, probe: Probe, dark: bool, hidden: Sequence[bool] = (False, False, False)
) -> None:
    """Draw the three points. Points marked in `hidden`, which lie on the far side of a sphere, are hollow."""
    ink = INK[dark]
    for name, at, behind in zip(("anchor", "positive", "negative"), arrays["points"], hidden, strict=True):
        shape: dict[str, Any] = {"marker": "s" if name == "negative" else "o", "linestyle": "none", "zorder": 7}
        if name == probe:
            axes.plot(*at, **shape | {"marker": "o"}, markersize=16, color="none", markeredgecolor=ink[name])
        fill, edge = (ink["rim"], ink[name]) if behind else (ink[name], ink["rim"])
        axes.plot(*at, **shape, markersize=10.5, color=fill, markeredgecolor=edge, markeredgewidth=1.4)
        letter: dict[str, Any] = {
            "color": edge,
            "fontsize": 6.8,
            "fontweight": "bold",
            "ha": "center",
            "va": "center_baseline",
        }
        axes.annotate(name[0].upper(), at, zorder=8, annotation_clip=True, **letter)
