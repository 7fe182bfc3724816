"""Publication figures of a triplet on the unit sphere or circle, drawn from the arrays of `sphere_arrays`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dmlcore.figures import field_layers as layers
from dmlcore.figures import strokes
from dmlcore.figures.field_arrays import polylines
from dmlcore.figures.fields import save_figure, sheet, values, write_caption, write_title
from dmlcore.figures.sphere_arrays import about, circle_arrays, colour_scale, snippet, sphere_arrays, unit
from dmlcore.geometry import Probe
from dmlcore.geometry.sphere import fibonacci_sphere, on_circle, on_sphere, raw_on_sphere, scan_sphere
from dmlcore.losses import TripletLoss
from dmlcore.typing import Arrays, Bools, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

__all__ = ["about", "circle_arrays", "draw_circle", "draw_sphere", "save_figure", "snippet", "sphere_arrays"]


PIXELS = 521  # number of pixels along the diameter of the sphere
NEEDLES, WHIRL = 360, 36  # number of arrows on the whole sphere, and of arrows around the circle
SPHERE_VIEW, CIRCLE_VIEW = (0.0, 0.0, 1.19), (0.0, 0.0, 1.55)  # centre and half width of the axes, in radii
BAND = 0.065  # half width of the ring
LEVELS = 8  # divisor of the colour range: the map has up to LEVELS - 1 equal-energy lines


def draw_sphere(
    loss: TripletLoss,
    anchor: Sequence[float],
    positive: Sequence[float],
    negative: Sequence[float],
    *,
    probe: Probe = "negative",
    eye: Sequence[float] = (20.0, 15.0),
    region: bool = True,
    arrows: bool = True,
    radial: bool = True,
    title: str | None = None,
    dark: bool = False,
    size: float = 5.2,
) -> Figure:
    """Draw the unit sphere over which `probe` moves, in orthographic projection, ready for `save_figure`.

    Positions are (longitude, latitude) in degrees. The colour of a pixel is the clamped loss with the probe at that
    pixel. Points behind the sphere are hollow.

    Args:
        loss: The triplet loss.
        anchor: Position of the anchor.
        positive: Position of the positive.
        negative: Position of the negative.
        probe: Point moved over the sphere: "anchor", "positive" or "negative".
        eye: Position on the sphere that faces the viewer.
        region: Hatch where no force acts on the probe and draw raw = 0 solid, raw = m2 dashed.
        arrows: Draw the force on the probe along the sphere, with length |F| / (|F| + median |F|).
        radial: Draw the components of the forces that normalisation removes.
        title: Heading; None for the name of the loss, "" for no heading.
        dark: Use the colours of the dark theme.
        size: Width of the figure in inches.

    Raises:
        ValueError: If a position or the probe is invalid.
    """
    arrays = sphere_arrays(loss, anchor, positive, negative, probe=probe)
    # Axes of the page: right, up and towards the viewer.
    seen = _axes_of(eye)
    points = [torch.from_numpy(x) for x in arrays["points"]]
    top, reference = colour_scale(loss, probe, 3)
    with sheet(size, size * 1.04, dark) as figure:
        from matplotlib.patches import Circle

        ink = strokes.INK[dark]
        axes = _bare(figure.add_subplot(), SPHERE_VIEW, dark)
        disc = axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=ink["text"], linewidth=1.1, zorder=3))
        # Draw the loss at every pixel of the disc, and hatch where no force acts on the probe.
        x = np.linspace(-1, 1, PIXELS)
        nodes = torch.from_numpy(_facing(x, seen))
        raw = raw_on_sphere(loss, *points, probe=probe, nodes=nodes).numpy()
        image = strokes.draw_image(axes, x, x, raw.clip(0.0, loss.m2), top, dark)
        image.set_clip_path(disc)
        if region:
            layers.draw_inactive(axes, x, x, raw, loss.m2, dark, disc)
        _rim(axes, x, disc)
        _graticule(axes, seen, ink)
        if region:
            _boundary(axes, arrays, seen, ink)
        if arrows:
            _needles(axes, loss, points, probe, reference, seen, dark)
        # Draw the triplet's edges along the sphere, then forces and points, all projected along the line of sight.
        _great_circles(axes, arrays["points"], seen, ink)
        flat = arrays["points"] @ seen.T
        tips = [strokes.arrow_shaft(force, 0.1, 0.75) for force in arrays["forces"]]
        outward = [
            strokes.arrow_shaft(f * at, 0.1, 0.75) for f, at in zip(arrays["radials"], arrays["points"], strict=True)
        ]
        _forces(
            axes, flat, [t @ seen.T for t in tips], [t @ seen.T for t in outward], arrays, radial, SPHERE_VIEW, dark
        )
        layers.draw_points(axes, {"points": flat[:, :2]}, probe, dark, list(flat[:, 2] < 0))
        if title != "":
            write_title(axes, loss, title, dark)
        strokes.draw_bar(figure, axes, image, "loss", dark)
        where = f"seen from longitude {eye[0]:.4g}°, latitude {eye[1]:.4g}°".replace("-", "−")
        hollow = "hollow: behind the sphere" if (flat[:, 2] < 0).any() else ""
        _caption(figure, loss, f"Unit sphere scanned by the {probe}, {where}", arrays, region, radial, dark, hollow)
    return figure


def draw_circle(
    loss: TripletLoss,
    anchor: float,
    positive: float,
    negative: float,
    *,
    probe: Probe = "negative",
    region: bool = True,
    arrows: bool = True,
    radial: bool = True,
    title: str | None = None,
    dark: bool = False,
    size: float = 4.4,
) -> Figure:
    """Draw the unit circle over which `probe` moves as a ring and, next to it, a map of the loss over two angles.

    The angles of the map are those of the positive and the negative relative to the anchor. The orange line in the map
    marks the triplets that the ring shows.

    Args:
        loss: The triplet loss.
        anchor: Angle of the anchor in degrees.
        positive: Angle of the positive in degrees.
        negative: Angle of the negative in degrees.
        probe: Point moved over the circle: "anchor", "positive" or "negative".
        region: Hatch where no force acts on the probe and draw raw = 0 solid, raw = m2 dashed.
        arrows: Draw the force on the probe along the circle.
        radial: Draw the components of the forces that normalisation removes.
        title: Heading; None for the name of the loss, "" for no heading.
        dark: Use the colours of the dark theme.
        size: Width of each of the two charts in inches.

    Raises:
        ValueError: If an angle or the probe is invalid.
    """
    arrays = circle_arrays(loss, anchor, positive, negative, probe=probe)
    top, reference = colour_scale(loss, probe, 2)
    with sheet(2 * size, size * 1.16, dark) as figure:
        left, right = figure.subplots(1, 2)
        _bare(left, CIRCLE_VIEW, dark)
        _ring(left, arrays, top, region, dark)
        if arrows:
            _whirl(left, arrays, reference, dark)
        layers.draw_edges(left, arrays, dark)
        tips = [strokes.arrow_shaft(force, 0.13, 0.5) for force in arrays["forces"]]
        outward = [
            strokes.arrow_shaft(f * at, 0.1, 0.5) for f, at in zip(arrays["radials"], arrays["points"], strict=True)
        ]
        _forces(left, arrays["points"], tips, outward, arrays, radial, CIRCLE_VIEW, dark)
        layers.draw_points(left, arrays, probe, dark)
        image = _map(right, loss, arrays, probe, (anchor, positive, negative), top, region, dark)
        strokes.draw_bar(figure, right, image, "loss", dark)
        if title != "":
            write_title(left, loss, title, dark)
        words = f"Left: unit circle scanned by the {probe}. Right: loss over the angles of P and N, from A"
        _caption(figure, loss, words, arrays, region, radial, dark, "orange: section shown by the ring", width=150)
    return figure


# ---- sphere and circle
def _bare(axes: Axes, view: tuple[float, float, float], dark: bool) -> Axes:
    _, _, half = view
    axes.set(xlim=(-half, half), ylim=(-half, half), aspect="equal", facecolor=strokes.INK[dark]["page"])
    axes.set_axis_off()
    return axes


def _forces(
    axes: Axes,
    at: Floats,
    tangential: list[Floats],
    outward: list[Floats],
    arrays: Arrays,
    radial: bool,
    view: tuple[float, float, float],
    dark: bool,
) -> None:
    """Draw the force arrows at the three points, with their magnitudes; arrows on the far side of the sphere are faint.

    Positions and arrows have shape (2,) on the circle and (3,) on the sphere, where the last coordinate points towards
    the viewer.
    """
    ink, half = strokes.INK[dark], view[2]
    width = axes.get_figure(root=True).get_figwidth() / (1 if half == SPHERE_VIEW[2] else 2)  # type: ignore[union-attr]
    room = np.array([1.0, 0.5]) / width * half
    taken: list[Floats] = [x[:2] for x in at]
    numbers = []
    for kind, shafts in enumerate((outward, tangential)):
        for i, (start, shaft) in enumerate(zip(at, shafts, strict=True)):
            length = float(np.linalg.norm(shaft[:2]))
            behind = len(start) > 2 and start[2] < 0
            if length < 0.03 or not (kind or radial):  # skip a zero force and one parallel to the line of sight
                continue
            tip, faint = (start + shaft)[:2], "59" if behind else ""
            if kind:
                strokes.draw_arrow(axes, start[:2], tip, ink["force"] + faint, ink["rim"], 2.2)
                text, colour = f"{np.linalg.norm(arrays['forces'][i]):.3g}", ink["forceText"]
            else:
                _radial(axes, start[:2], tip, ink["text"] + faint, ink["rim"])
                text, colour = f"{abs(arrays['radials'][i]):.2g}", ink["text"]
            if not behind and length > 0.1:
                numbers.append((tip, shaft[:2] / length, text, colour))
    for tip, direction, text, colour in numbers:
        taken.append(layers.free_place(tip, direction, taken, room, np.zeros(2), half))
        strokes.draw_text(axes, taken[-1], text, colour, dark, va="center")


def _radial(axes: Axes, start: Floats, tip: Floats, colour: str, rim: str) -> None:
    glow = strokes.rim(3, rim)
    line = np.stack([start, tip])
    axes.plot(*line.T, color=colour, linewidth=1.4, linestyle=(0, (1.2, 1.2)), path_effects=glow, zorder=5)
    axes.plot(*tip, "o", color=colour, markersize=3, markeredgewidth=0, zorder=5)


def _caption(
    figure: Figure,
    loss: TripletLoss,
    first: str,
    arrays: Arrays,
    region: bool,
    radial: bool,
    dark: bool,
    more: str,
    width: int = 90,
) -> None:
    keys = [first, more] if more else [first]
    if region:
        keys += layers.boundary_words(arrays, ("", "map_"))
    keys.append("green: forces along the surface")
    if radial:
        keys.append("dotted: radial part, which normalisation removes")
    raw, energy = arrays["triplet"]
    numbers = f"Loss {energy:.4g} (before the clamp {raw:.4g})".replace("-", "−")
    write_caption(
        figure, f"{'; '.join(keys)}. {numbers}. {loss.formula.source}.", dark, first=values(loss), width=width
    )


# ---- sphere
def _axes_of(eye: Sequence[float]) -> Floats:
    """Return the unit vectors that point right, up and towards the viewer at `eye`, as rows, shape (3, 3)."""
    towards = unit(eye).numpy()
    longitude, latitude = np.deg2rad(np.asarray(eye, dtype=float))
    right = np.array([-math.sin(longitude), math.cos(longitude), 0.0])
    up = np.array(
        [-math.sin(latitude) * math.cos(longitude), -math.sin(latitude) * math.sin(longitude), math.cos(latitude)]
    )
    return np.stack([right, up, towards])


def _facing(x: Floats, seen: Floats) -> Floats:
    """Return the visible points (n, n, 3) of the sphere at the pixels x times x; pixels off the disc map to its rim."""
    u, v = np.meshgrid(x, x)
    r = np.maximum(np.hypot(u, v), 1e-12)
    shrink = np.minimum(1.0, 1 / r)
    depth = np.sqrt(np.maximum(0.0, 1 - (r * shrink) ** 2))
    directions: Floats = np.stack([u * shrink, v * shrink, depth], axis=-1) @ seen
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    return directions


def _rim(axes: Axes, x: Floats, disc: Patch) -> None:
    """Darken the rim of the disc so that it looks like a sphere, without changing the colours in the middle."""
    shadow = np.zeros((len(x), len(x), 4))
    shadow[..., 3] = 0.28 * np.clip((np.hypot(*np.meshgrid(x, x)) - 0.84) / 0.16, 0, 1)
    axes.imshow(shadow, extent=(-1, 1, -1, 1), origin="lower", interpolation="bilinear", zorder=1.5).set_clip_path(disc)


def _front(line: Floats, seen: Floats, side: int = 1) -> Floats:
    """Return page coordinates (K, 2) of a line (K, 3) on the sphere.

    Points on the far side are NaN if `side` is 1; points on the near side are NaN if `side` is -1.
    """
    flat = line @ seen.T
    shown: Floats = np.where(side * flat[:, 2:] >= 0, flat[:, :2], np.nan)
    return shown


def _graticule(axes: Axes, seen: Floats, ink: dict[str, str]) -> None:
    turn, climb = torch.linspace(-180, 180, 181, dtype=torch.float64), torch.linspace(-75, 75, 61, dtype=torch.float64)
    parallels = [(turn, torch.tensor(float(lat))) for lat in range(-60, 61, 30)]
    meridians = [(torch.tensor(float(lon)), climb) for lon in range(0, 360, 30)]
    for longitude, latitude in (*parallels, *meridians):
        line = on_sphere(torch.deg2rad(longitude.double()), torch.deg2rad(latitude.double())).numpy()
        axes.plot(*_front(line, seen).T, color=ink["text"], alpha=0.22, linewidth=0.5, zorder=2)
    for text, place in (
        ("0°", (0, 0)),
        ("90°", (90, 0)),
        ("180°", (180, 0)),
        ("−90°", (-90, 0)),
        ("N", (0, 90)),
        ("S", (0, -90)),
    ):
        x, y, depth = seen @ unit(place).numpy()
        if depth > 0.25:
            shown = {"N": "+90° lat", "S": "−90° lat"}.get(text, text)
            axes.text(x, y - 0.03, shown, color=ink["text"], alpha=0.75, fontsize=6, ha="center", va="top", zorder=2)


def _boundary(axes: Axes, arrays: Arrays, seen: Floats, ink: dict[str, str]) -> None:
    glow = strokes.rim(3, ink["rim"] + "66")
    for name, dashes in layers.BOUNDARIES.items():
        for line in polylines(arrays, name):
            flat = _front(on_sphere(*torch.deg2rad(torch.from_numpy(line)).T).numpy(), seen)
            axes.plot(*flat.T, color=ink["text"], linewidth=1.2, linestyle=dashes, path_effects=glow, zorder=2.5)


def _needles(
    axes: Axes,
    loss: TripletLoss,
    points: list[torch.Tensor],
    probe: Probe,
    reference: float,
    seen: Floats,
    dark: bool,
) -> None:
    """Draw the force on the probe along the sphere as arrows at evenly distributed visible points."""
    nodes = fibonacci_sphere(NEEDLES)
    force = scan_sphere(loss, *points, probe=probe, nodes=nodes).tangential.numpy()
    shaft = 0.18 * strokes.compressed(force, reference)
    at, along = nodes.numpy() @ seen.T, shaft @ seen.T
    front = (at[:, 2] > 0.06) & (np.linalg.norm(along[:, :2], axis=-1) > 0.006)
    strokes.draw_needles(axes, at[front, 0], at[front, 1], along[front], dark)


def _great_circles(axes: Axes, points: Floats, seen: Floats, ink: dict[str, str]) -> None:
    """Draw the edges of the triplet as great-circle arcs, faint on the far side of the sphere."""
    for i, j, colour, dashes in ((0, 1, "positive", "-"), (0, 2, "negative", "--"), (1, 2, "negative", "--")):
        a, b = points[i], points[j]
        angle = math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b))
        if math.sin(angle) < 1e-6:  # skip equal or opposite points, because no unique great circle joins them
            continue
        t = np.linspace(0, 1, 61)[:, None]
        line = (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / math.sin(angle)
        for side, alpha in ((-1, 0.28), (1, 1.0)):
            flat = _front(line, seen, side)
            axes.plot(*flat.T, color=ink[colour], alpha=alpha, linewidth=1.1, linestyle=dashes, zorder=4)


# ---- circle
def _ring(axes: Axes, arrays: Arrays, top: float, region: bool, dark: bool) -> None:
    from matplotlib.patches import Polygon

    ink, n = strokes.INK[dark], len(arrays["angle"])
    angle = np.deg2rad(np.append(arrays["angle"], 360.0))
    half = math.pi / n
    spokes = np.stack([np.cos(angle - half), np.sin(angle - half)])
    axes.pcolormesh(
        *(np.outer([1 - BAND, 1 + BAND], row) for row in spokes), arrays["energy"].clip(0, top)[None],
        cmap=strokes.ramp(dark), vmin=0, vmax=top, rasterized=True, zorder=0,
    )  # fmt: skip
    for first, last, active in _runs(arrays["active"]):
        around = np.linspace(first * 2 * half - half, last * 2 * half - half, 2 + 2 * (last - first))
        arc = np.stack([np.cos(around), np.sin(around)], axis=1)
        if region and active:
            axes.plot(*(1.077 * arc).T, color=ink["text"], linewidth=1.8, solid_capstyle="butt", zorder=2)
        elif region:
            band = np.concatenate([(1 - BAND) * arc, (1 + BAND) * arc[::-1]])
            veil: dict[str, Any] = {"facecolor": ink["veil"], "edgecolor": ink["hatch"], "linewidth": 0, "zorder": 1}
            axes.add_patch(Polygon(band, closed=True, hatch="//////", hatch_linewidth=0.5, **veil))
    for radius in (1 - BAND, 1 + BAND):
        axes.plot(*radius * np.stack([np.cos(angle), np.sin(angle)]), color=ink["text"], alpha=0.45, linewidth=0.6)
    for degrees in (0, 90, 180, -90):
        x, y = on_circle(torch.deg2rad(torch.tensor(float(degrees)))).numpy() * 0.84
        axes.plot([0, x], [0, y], color=ink["text"], alpha=0.1, linewidth=0.6, zorder=0)
        axes.text(x, y, f"{degrees}°".replace("-", "−"), color=ink["text"], fontsize=6.5, ha="center", va="center")


def _runs(active: Bools) -> list[tuple[int, int, bool]]:
    """Return (first node, end node, active) of each run of nodes on the ring that are all active or all inactive.

    The end node is exclusive; it exceeds the number of nodes if the run crosses node 0.
    """
    starts = np.flatnonzero(active != np.roll(active, 1))
    if not len(starts):
        return [(0, len(active), bool(active[0]))]
    ends = np.append(starts[1:], starts[0] + len(active))
    return [(int(i), int(j), bool(active[i])) for i, j in zip(starts, ends, strict=True)]


def _whirl(axes: Axes, arrays: Arrays, reference: float, dark: bool) -> None:
    """Draw the force on the probe along the circle, outside the ring."""
    every = slice(None, None, len(arrays["angle"]) // WHIRL)
    shaft = 2 * math.pi / WHIRL * 1.1 * strokes.compressed(arrays["force"][every], reference)
    angle = torch.deg2rad(torch.from_numpy(arrays["angle"][every]))
    felt = np.linalg.norm(shaft, axis=-1) > 0.006
    at = 1.16 * on_circle(angle).numpy()[felt]
    strokes.draw_needles(axes, at[:, 0], at[:, 1], shaft[felt], dark)


def _map(
    axes: Axes,
    loss: TripletLoss,
    arrays: Arrays,
    probe: Probe,
    angles: tuple[float, float, float],
    top: float,
    region: bool,
    dark: bool,
) -> Any:
    ink, axis = strokes.INK[dark], arrays["map_axis"]
    image = strokes.draw_image(axes, axis, axis, arrays["map_energy"], top, dark)
    if region:
        layers.draw_inactive(axes, axis, axis, arrays["map_raw"], loss.m2, dark)
        layers.draw_boundaries(axes, arrays, dark, "map_{}")
    levels = [top * k / LEVELS for k in range(1, LEVELS) if top * k / LEVELS < loss.m2]
    bands = np.clip(arrays["map_raw"], -top, 2 * top)
    if levels and bands.min() < levels[-1] and bands.max() > levels[0]:
        axes.contour(axis, axis, bands, levels=levels, colors=[ink["text"]], linewidths=0.4, alpha=0.45, zorder=2)
    # Draw the lines on which two points coincide.
    for text, x, y, at in (
        ("P = A", (0, 0), (-180, 180), (0, -168)),
        ("N = A", (-180, 180), (0, 0), (-150, 0)),
        ("P = N", (-180, 180), (-180, 180), (140, 140)),
    ):
        axes.plot(x, y, color=ink["text"], linewidth=0.7, linestyle=(0, (1.5, 3)), zorder=2)
        strokes.draw_text(axes, at, text, ink["text"], dark, va="center", fontsize=6.5)
    a, p, n = angles
    # Mark the triplet, rotated so that the anchor is at 0, and the line along which the probe moves.
    p, n = (x - a - 360 * round((x - a) / 360) for x in (p, n))
    sweep: dict[str, Any] = {"color": ink["selected"], "linewidth": 1.4, "zorder": 4}
    if probe == "anchor":
        for turn in (-360, 0, 360):
            axes.axline((p, n + turn), slope=1, **sweep)
    elif probe == "positive":
        axes.axhline(n, **sweep)
    else:
        axes.axvline(p, **sweep)
    axes.plot(
        p, n, "o", color=ink["selected"], markersize=8, markeredgecolor=ink["text"], markeredgewidth=1.2, zorder=5
    )
    axes.set(
        xlim=(-180, 180), ylim=(-180, 180), aspect="equal", xticks=range(-180, 181, 90), yticks=range(-180, 181, 90)
    )
    across, up = "angle of P, from A (degrees)", "angle of N, from A (degrees)"
    strokes.draw_frame(axes, dark, across, up, ticks=7, size=7.5)
    return image
