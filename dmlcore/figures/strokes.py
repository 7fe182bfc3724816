"""Drawing primitives of publication figures: colours, lines, frames, images, arrows and texts in matplotlib axes.

Colours are those of the pages (palette.json): an Okabe-Ito colour for each role, and a lightness ramp
for energies.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from dmlcore.figures.palette import INK as INK
from dmlcore.figures.palette import SCALES
from dmlcore.geometry.scales import percentile, round_top
from dmlcore.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.patheffects import AbstractPathEffect

ARROWS = 20  # number of arrows along one side of the view

RAMP, SIGNED = SCALES["energy"], SCALES["signed"]  # by `dark`


def colour_top(values: Floats, active: Bools, upper: float = math.inf) -> float:
    """Return the upper limit of a colour scale: the 97th percentile of active values, rounded up, at most `upper`."""
    return round_top(percentile(values[active], 97), upper)


def draw_frame(axes: Axes, dark: bool, across: str = "", up: str = "", *, ticks: float = 7.5, size: float = 8) -> None:
    """Draw the frame, ticks and names of both axes; `ticks` and `size` are font sizes in points."""
    ink = INK[dark]["text"]
    axes.tick_params(colors=ink, labelsize=ticks, width=0.6, length=2.5)
    axes.spines[:].set(color=ink, linewidth=0.6)
    for name, write in ((across, axes.set_xlabel), (up, axes.set_ylabel)):
        if name:
            write(name, color=ink, fontsize=size)


def ramp(dark: bool, *, signed: bool = False, first: int = 0) -> LinearSegmentedColormap:
    """Return the colour map for energies or, if `signed`, for signed values.

    The first `first` colours of its list are skipped.
    """
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("field", (SIGNED if signed else RAMP)[dark][first:])


def rim(width: float, colour: str) -> list[AbstractPathEffect]:
    """Return a path effect that draws a stroke `width` points wide behind a line or text, as an outline."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground=colour)]


def draw_image(
    axes: Axes, x: Floats, y: Floats, values: Floats, top: float, dark: bool, *, signed: bool = False
) -> AxesImage:
    """Draw `values` (H, W) on the grid x (W,), y (H,) as an image.

    The colours range from 0 to `top`, or from -`top` to `top` if `signed`.
    """
    low, cell = -top if signed else 0.0, (x[1] - x[0]) / 2
    return axes.imshow(
        np.clip(values, low, top), extent=(x[0] - cell, x[-1] + cell, y[0] - cell, y[-1] + cell), origin="lower",
        cmap=ramp(dark, signed=signed), vmin=low, vmax=top, interpolation="bilinear", zorder=0,
    )  # fmt: skip


def draw_needles(axes: Axes, x: Floats, y: Floats, along: Floats, dark: bool) -> None:
    """Draw small arrows with the vectors `along` (..., 2), in data coordinates, centred at the positions x and y."""
    axes.quiver(
        x, y, along[..., 0], along[..., 1],
        pivot="mid", angles="xy", scale_units="xy", scale=1, color=INK[dark]["arrow"], zorder=3,
        units="width", width=0.0026, headwidth=4.5, headlength=5, headaxislength=4.2, minlength=0.4,
    )  # fmt: skip


def median_force(size: Floats, active: Bools) -> float:
    """Return the median magnitude of active forces, the reference for arrow lengths; 1 if it is missing or not
    positive.
    """
    felt = size[active]
    return float(np.median(felt)) if felt.size and np.median(felt) > 0 else 1.0


def compressed(force: Floats, reference: float) -> Floats:
    """Return forces (..., D) with lengths |F| / (|F| + reference), below 1; a force that is not finite becomes 0."""
    with np.errstate(invalid="ignore"):
        arrows: Floats = np.nan_to_num(force / (np.linalg.norm(force, axis=-1, keepdims=True) + reference))
    return arrows


def arrow_nodes(n: int) -> Ints:
    """Return the indices of evenly spaced nodes at which arrows are drawn, out of `n` nodes along a side."""
    nodes: Ints = ((np.arange(ARROWS) + 0.5) * n / ARROWS).astype(int)
    return nodes


def draw_bar(
    figure: Figure, axes: Any, image: Any, name: str, dark: bool, *, ends: Literal["neither", "max", "both"] = "max"
) -> None:
    """Draw the colour bar of `image` next to `axes`; pointed `ends` show that values beyond the scale are clipped."""
    ink = INK[dark]["text"]
    colours = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.02, extend=ends)
    colours.set_label(name, color=ink, fontsize=8)
    colours.ax.tick_params(colors=ink, labelsize=7.5, width=0.6, length=2.5)
    cast(Any, colours.outline).set(edgecolor=ink, linewidth=0.6)


def arrow_shaft(force: Floats, least: float, most: float) -> Floats:
    """Return the arrow vector of a force.

    Its length rises from `least` towards `least + most` as the force grows. A zero or infinite force gives a zero
    vector. The pages use the same formula.
    """
    magnitude = float(np.linalg.norm(force))
    if not (1e-9 < magnitude < math.inf):
        return np.zeros_like(force)
    return force / magnitude * (least + most * (1 - math.exp(-magnitude / 1.6)))


def draw_arrow(axes: Axes, at: Any, tip: Any, colour: str, edge: str, width: float, style: str = "-") -> None:
    """Draw an outlined arrow from `at` (2,) to `tip` (2,), `width` points wide, clipped to the axes."""
    head = f"-|>,head_length={0.3 + width / 11},head_width={0.15 + width / 20}"
    shaft = {"arrowstyle": head, "color": colour, "linewidth": width, "linestyle": style, "shrinkA": 0, "shrinkB": 0}
    arrow = axes.annotate("", tip, at, arrowprops=shaft, zorder=5, annotation_clip=False).arrow_patch
    if arrow is not None:
        arrow.set_path_effects(rim(width + 1.8, edge))
        arrow.set(clip_on=True, clip_path=axes.patch)


def draw_text(axes: Axes, at: Any, text: str, colour: str, dark: bool, **align: Any) -> None:
    """Draw outlined `text` at position `at`; `align` is passed to `Axes.annotate`."""
    look: dict[str, Any] = {"ha": "center", "fontsize": 7.5, "fontweight": "bold", "color": colour, "zorder": 6}
    shown = axes.annotate(text, at, annotation_clip=True, **look | align)
    shown.set_path_effects(rim(2.2, INK[dark]["rim"]))
