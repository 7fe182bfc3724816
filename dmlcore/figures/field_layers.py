"""The layers of a field figure: each draws one thing of the arrays of `field_arrays` into matplotlib axes."""

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
    colour_top,
    draw_arrow,
    draw_bar,
    draw_frame,
    draw_image,
    draw_needles,
    draw_text,
    middle_force,
    shaft_of,
)
from dmlcore.geometry import Probe
from dmlcore.geometry.hardness import Hardness
from dmlcore.typing import Arrays, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

Shade = Literal["energy", "raw", "force", "none"]

LEAST, MOST = 16 / 320, 150 / 320  # lengths of the shafts of forces, in half widths of the view
BOUNDARIES: dict[str, Any] = {"outer": "-", "inner": (0, (4, 2.5))}  # raw = 0, raw = m2


def draw_hardness(axes: Axes, arrays: Arrays, hardness: Hardness, dark: bool) -> None:
    """The circle that parts hard from semi-hard (Karaman 2021, Fig. 2.5) and the names of the regions."""
    if hardness.radius is not None:
        draw_rings(axes, [(arrays["points"][0], hardness.radius, "")], dark)
    for name, at in hardness.names:
        draw_text(axes, at, name, INK[dark]["disc"], dark, va="center")


def draw_plane(axes: Axes, view: View, dark: bool) -> None:
    """Frame, grid and ticks of the square `view` = (centre x, centre y, half width)."""
    x, y, half = view
    ink = INK[dark]
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal", facecolor=ink["page"])
    axes.grid(True, color=ink["grid"], linewidth=0.6)
    draw_frame(axes, dark)


def boundary_words(arrays: Arrays, prefixes: Sequence[str] = ("",)) -> list[str]:
    """What lines and hatching of the active region mean, for a caption; those that are there."""
    words = [("solid line: loss = 0", "outer"), ("dashed: upper clamp", "inner")]
    drawn = [text for text, name in words if any(len(arrays.get(prefix + name, ())) for prefix in prefixes)]
    everywhere = all(arrays[prefix + "active"].all() for prefix in prefixes if prefix + "active" in arrays)
    return drawn if everywhere else [*drawn, "hatched: no force"]


def draw_heat(figure: Figure, axes: Axes, arrays: Arrays, shade: Shade, m2: float, dark: bool, *, bar: bool) -> float:
    """The colour image of `arrays`, clamped at `m2`, with its scale if `bar`; returns where the scale ends."""
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


def _compressed(raw: Floats, level: float) -> Floats:
    """raw about a level, on a scale where infinities are finite and the level is 0."""
    return np.arcsinh(np.clip(raw - level, -1e9, 1e9) / 0.1)


def draw_region(axes: Axes, arrays: Arrays, m2: float, dark: bool) -> None:
    """The active region 0 < raw < m2: hatched outside, boundaries drawn."""
    draw_inactive(axes, arrays["x"], arrays["y"], arrays["raw"], m2, dark)
    draw_boundaries(axes, arrays, dark)


def draw_inactive(
    axes: Axes, x: Floats, y: Floats, raw: Floats, m2: float, dark: bool, clip: Patch | None = None
) -> None:
    """Hatch where raw (H, W) over x (W,), y (H,) is clamped, inside of `clip`."""
    ink, far = INK[dark], 50.0  # arcsinh(1e10) = 23.7
    levels = [([-far, 0.0], _compressed(raw, 0.0))]
    if math.isfinite(m2):
        levels.append(([0.0, far], _compressed(raw, m2)))
    for between, values in levels:
        if (values >= between[0]).any() and (values <= between[1]).any():
            hatched = axes.contourf(x, y, values, levels=between, colors=[ink["veil"]], hatches=["////"], zorder=1)
            hatched.set(edgecolor=ink["hatch"], linewidth=0.0, hatch_linewidth=0.5)
            if clip is not None:
                hatched.set_clip_path(clip)


def draw_boundaries(axes: Axes, arrays: Arrays, dark: bool, pattern: str = "{}") -> None:
    """The polylines `outer` solid and `inner` dashed, named by a pattern, in the coordinates of the axes."""
    for name, dashes in BOUNDARIES.items():
        for line in polylines(arrays, pattern.format(name)):
            axes.plot(*line.T, color=INK[dark]["text"], linewidth=1.2, linestyle=dashes, zorder=2)


def draw_contours(axes: Axes, arrays: Arrays, which: str, m2: float, dark: bool) -> None:
    """Some ten named equipotentials: of "raw" anywhere, of "clamped" within 0..m2."""
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


def draw_rings(axes: Axes, rings: Sequence[tuple[Floats, float, str]], dark: bool) -> None:
    """Dotted circles: centre (2,), radius, and a name below the circle or ""."""
    from matplotlib.patches import Circle

    colour = INK[dark]["disc"]
    for at, radius, name in rings:
        axes.add_patch(
            Circle(tuple(at), radius, fill=False, edgecolor=colour, linewidth=1.2, linestyle=(0, (1.5, 2)), zorder=3)
        )
        if name:
            draw_text(axes, (at[0], at[1] - radius), name, colour, dark, va="bottom", offset=(0, 3))


def draw_streams(axes: Axes, arrays: Arrays, dark: bool) -> None:
    """Streamlines of the force within the active region."""
    force = np.where(arrays["active"][..., None], arrays["force"], np.nan)
    if arrays["active"].any():
        axes.streamplot(
            arrays["x"], arrays["y"], force[..., 0], force[..., 1],
            color=INK[dark]["arrow"], linewidth=0.7, density=1.3, arrowsize=0.7, zorder=3,
        )  # fmt: skip


def draw_arrows(axes: Axes, arrays: Arrays, view: View, dark: bool) -> None:
    """Direction exact, length |F| / (|F| + median |F|) of a cell: a diverging push would hide all others."""
    nodes = arrow_nodes(len(arrays["x"]))
    force = arrays["force"][np.ix_(nodes, nodes)]
    length = np.linalg.norm(force, axis=-1)
    reference = middle_force(np.linalg.norm(arrays["force"], axis=-1), arrays["active"])
    cell = 2 * view[2] / ARROWS
    with np.errstate(invalid="ignore"):
        shaft = np.where(length[..., None] > 0, force / (length[..., None] + reference), 0.0) * cell * 0.95
    draw_needles(axes, arrays["x"][nodes], arrays["y"][nodes], shaft, dark)


def draw_edges(axes: Axes, arrays: Arrays, dark: bool) -> None:
    """The triangle: a-p solid, a-n and p-n dashed."""
    ink, (a, p, n) = INK[dark], arrays["points"]
    for start, end, colour, dashes in ((a, p, "positive", "-"), (a, n, "negative", "--"), (p, n, "negative", "--")):
        axes.plot(*np.stack([start, end]).T, color=ink[colour], linewidth=1.0, linestyle=dashes, zorder=4)


def draw_resultants(axes: Axes, arrays: Arrays, view: View, dark: bool) -> None:
    """The force on each point with its magnitude, numbers kept apart."""
    ink, half, centre = INK[dark], view[2], np.array(view[:2])
    taken = list(arrays["points"])  # places a number keeps away from
    room = np.array([1.0, 0.5]) / cast("Figure", axes.figure).get_figwidth() * half
    for at, force in zip(arrays["points"], arrays["forces"], strict=True):
        shaft = shaft_of(force, LEAST * half, MOST * half)
        if not shaft.any():
            continue
        tip = at + shaft
        draw_arrow(axes, at, tip, ink["force"], ink["rim"], 2.2)
        taken.append(free_place(tip, force / np.linalg.norm(force), taken, room, centre, half))
        draw_text(axes, taken[-1], f"{np.linalg.norm(force):.3g}", ink["number"], dark, va="center")


def free_place(tip: Floats, unit: Floats, taken: Sequence[Floats], room: Floats, centre: Floats, half: float) -> Floats:
    """Where the number of an arrow stands: beyond its tip, or aside where another place (2,) within `room` is taken."""
    aside = np.array([-unit[1], unit[0]])
    ways = (unit, aside, -aside, unit + 1.5 * aside, unit - 1.5 * aside, 2 * unit)
    places = [np.clip(tip + 0.09 * half * way, centre - 0.92 * half, centre + 0.92 * half) for way in ways]
    free = [min(np.abs((place - other) / room).max() for other in taken) for place in places]
    return next((x for x, distance in zip(places, free, strict=True) if distance > 1), places[int(np.argmax(free))])


def draw_parts(axes: Axes, arrays: Arrays, view: View, dark: bool) -> None:
    """Every part of every force: along a-p in the positive's colour, from n in the negative's, residuals dotted."""
    ink = INK[dark]
    for i, at in enumerate(arrays["points"]):
        for part, (pair, colour, style) in enumerate(
            (("ap", "positive", "-"), ("an", "negative", "-"), ("pn", "negative", "-"), ("", "text", ":"))
        ):
            force = arrays["residuals"][i] if not pair else arrays["parts"][i, part]
            shaft = shaft_of(force, LEAST * view[2], MOST * view[2])
            if shaft.any():
                draw_arrow(axes, at, at + shaft, ink[colour], ink["rim"], 1.2, style)


def draw_points(
    axes: Axes, arrays: Arrays, probe: Probe, dark: bool, hidden: Sequence[bool] = (False, False, False)
) -> None:
    """The three points; hollow where `hidden`, behind a sphere."""
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
