"""Publication figure that compares force fields of losses, with one chart per loss and the difference between two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dmlcore.figures import field_layers as layers
from dmlcore.figures import strokes
from dmlcore.figures.field_arrays import View
from dmlcore.figures.fields import sheet, write_caption
from dmlcore.geometry import FieldTable, Probe
from dmlcore.geometry.boundary import level_lines
from dmlcore.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SIZE = 3.6  # width of a chart in inches


@dataclass(frozen=True)
class ComparisonPlane:
    """A loss with its force field, drawn as one chart of the comparison.

    Attributes:
        title: Heading of the chart.
        field: Force field of the loss on the grid.
        forces: Forces on the three points, shape (3, 2).
        m2: Upper bound of the clamp.
        clamp: True if field and forces belong to the clamped loss.
    """

    title: str
    field: FieldTable
    forces: Floats
    m2: float = math.inf
    clamp: bool = True


def draw_comparison(
    planes: Sequence[ComparisonPlane],
    x: Floats,
    y: Floats,
    points: Floats,
    *,
    view: View,
    pair: tuple[int, int] = (0, 1),
    shade: str = "energy",
    signed: bool = False,
    region: bool = True,
    arrows: bool = True,
    probe: Probe = "negative",
    caption: str = "",
    dark: bool = False,
) -> Figure:
    """Draw one chart per loss in a row, followed by the difference planes[pair[0]] - planes[pair[1]].

    All charts share one colour scale and one scale of arrow lengths, |F| / (|F| + median |F|).

    Args:
        planes: The losses, each with a field over the grid of `x` and `y`.
        x: Abscissas of the grid, shape (W,).
        y: Ordinates of the grid, shape (H,).
        points: Anchor, positive and negative, shape (3, 2).
        view: Centre x, centre y and half width of the visible square.
        pair: Indices of the two losses to subtract.
        shade: Quantity shown as colour, "energy" or "force".
        signed: Use a diverging colour scale centred at zero.
        region: Draw the boundaries of the active region.
        arrows: Draw the direction of the force.
        probe: Point moved over the plane: "anchor", "positive" or "negative".
        caption: Text below the figure.
        dark: Use the colours of the dark theme.

    Raises:
        ValueError: If `shade` is neither "energy" nor "force".
    """
    if shade not in ("energy", "force"):
        raise ValueError(f"shade must be energy or force, got {shade!r}")
    # All charts share one colour scale and one reference force for arrow lengths. Grid nodes where the loss is singular
    # or inactive affect neither.
    values = [_values(p.field, shade) for p in planes]
    active = np.stack([p.field.active.numpy() for p in planes])
    finite = active & np.isfinite(np.stack(values))
    top = strokes.colour_top(np.abs(np.stack(values)), finite)
    force = np.stack([p.field.force.numpy() for p in planes])
    reference = strokes.median_force(np.linalg.norm(force, axis=-1), active)
    # The upper limit of the colour scale for the difference is at least a thousandth of that for the losses, so that
    # rounding errors remain invisible.
    first, second = pair
    apart = values[first] - values[second]
    if shade == "force":
        apart = np.linalg.norm(force[first] - force[second], axis=-1)
    span = max(strokes.colour_top(np.abs(apart), np.isfinite(apart) & (apart != 0)), top / 1000)
    ink, count = strokes.INK[dark], len(planes) + 1
    with sheet(count * SIZE, SIZE * 1.3, dark) as figure:
        axes = figure.subplots(1, count, squeeze=False)[0]
        # Draw one chart per loss, from the heat map at the back to the points at the front.
        for ax, plane, shown, felt in zip(axes, planes, values, force, strict=False):
            image = strokes.draw_image(ax, x, y, np.nan_to_num(shown), top, dark, signed=signed)
            layers.draw_plane(ax, view, dark)
            if region:
                _boundaries(ax, x, y, plane, dark)
            if arrows:
                layers.draw_arrows(ax, {"x": x, "y": y, "force": felt}, view, dark, reference)
            arrays = {"points": points, "forces": plane.forces}
            layers.draw_edges(ax, arrays, dark)
            layers.draw_resultants(ax, arrays, view, dark)
            layers.draw_points(ax, arrays, probe, dark)
            ax.set_title(plane.title, color=ink["text"], fontsize=8.5, loc="left")
        # Draw the difference in the last column.
        left = strokes.draw_image(axes[-1], x, y, np.nan_to_num(apart), span, dark, signed=True)
        layers.draw_plane(axes[-1], view, dark)
        if arrows:
            between = {"x": x, "y": y, "force": force[first] - force[second]}
            layers.draw_arrows(axes[-1], between, view, dark, reference)
        layers.draw_points(axes[-1], {"points": points}, probe, dark)
        axes[-1].set_title(f"{first + 1} − {second + 1}", color=ink["text"], fontsize=8.5, loc="left")
        # Draw two colour bars: one below all losses, one below the difference.
        for mappable, axes_of, name in (
            (image, list(axes[:-1]), f"{'loss' if shade == 'energy' else shade}, all planes"),
            (left, [axes[-1]], "difference"),
        ):
            bar = figure.colorbar(
                mappable, ax=axes_of, orientation="horizontal", fraction=0.05, pad=0.02, shrink=1 / len(axes_of)
            )
            bar.set_label(name, color=ink["text"], fontsize=8)
            bar.ax.tick_params(colors=ink["text"], labelsize=7.5, width=0.6, length=2.5)
        if caption:
            write_caption(figure, caption, dark, width=int(15 * count * SIZE))
    return figure


def _values(field: FieldTable, shade: str) -> Floats:
    values: Floats = (field.energy if shade == "energy" else field.size).numpy()
    return values


def _boundaries(axes: Axes, x: Floats, y: Floats, plane: ComparisonPlane, dark: bool) -> None:
    """Draw the lines raw = 0 (solid) and raw = m2 (dashed), for each order of anchor and positive.

    `raw` is the loss before the clamp. Without a clamp, only raw = 0 is drawn.
    """
    for raw in plane.field.orders if plane.clamp else (plane.field.raw,):
        for level, style in ((0.0, "-"), (plane.m2 if plane.clamp else math.inf, "--")):
            for line in level_lines(x, y, raw.numpy(), level):
                axes.plot(*line.T, color=strokes.INK[dark]["text"], linewidth=1.1, linestyle=style, zorder=2)
