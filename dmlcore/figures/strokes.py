"""Drawing primitives of figures for print: colours, strokes, frames, images, arrows and texts in matplotlib axes.

Colours are those of the pages (assets/shared/colours.js): Okabe-Ito roles, and one ramp of lightness for energies.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from dmlcore.figures.scales import percentile, round_top
from dmlcore.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.patheffects import AbstractPathEffect

ARROWS = 20  # number of arrows along one side

_PALETTE = json.loads(Path(__file__).with_name("palette.json").read_text("utf-8"))  # also read by the pages
_THEMES = {False: _PALETTE["light"], True: _PALETTE["dark"]}  # by `dark`
INK: dict[bool, dict[str, str]] = {dark: theme["ink"] for dark, theme in _THEMES.items()}
RAMP: dict[bool, tuple[str, ...]] = {dark: tuple(theme["energy"]) for dark, theme in _THEMES.items()}
SIGNED: dict[bool, tuple[str, ...]] = {dark: tuple(theme["signed"]) for dark, theme in _THEMES.items()}


def colour_top(values: Floats, active: Bools, upper: float = math.inf) -> float:
    """Return the top of the colour scale: the 97th percentile of the active values, two digits, at most `upper`."""
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
    """Return the colour map of energies, or of signed values, starting at entry `first` of its list of colours."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("field", (SIGNED if signed else RAMP)[dark][first:])


def rim(width: float, colour: str) -> list[AbstractPathEffect]:
    """Return a path effect: a stroke `width` points wide behind the drawn line or text."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground=colour)]


def draw_image(
    axes: Axes, x: Floats, y: Floats, values: Floats, top: float, dark: bool, *, signed: bool = False
) -> AxesImage:
    """Draw values (H, W) at x (W,), y (H,) as colours on a scale from 0, or -top if `signed`, to top."""
    low, cell = -top if signed else 0.0, (x[1] - x[0]) / 2
    return axes.imshow(
        np.clip(values, low, top), extent=(x[0] - cell, x[-1] + cell, y[0] - cell, y[-1] + cell), origin="lower",
        cmap=ramp(dark, signed=signed), vmin=low, vmax=top, interpolation="bilinear", zorder=0,
    )  # fmt: skip


def draw_needles(axes: Axes, x: Floats, y: Floats, along: Floats, dark: bool) -> None:
    """Draw small arrows `along` (..., 2) centred at x, y, in units of the axes."""
    axes.quiver(
        x, y, along[..., 0], along[..., 1],
        pivot="mid", angles="xy", scale_units="xy", scale=1, color=INK[dark]["arrow"], zorder=3,
        units="width", width=0.0026, headwidth=4.5, headlength=5, headaxislength=4.2, minlength=0.4,
    )  # fmt: skip


def median_force(size: Floats, active: Bools) -> float:
    """Return the median of the sizes (...) where `active`, the reference of arrow lengths; 1 if there is none."""
    felt = size[active]
    return float(np.median(felt)) if felt.size and np.median(felt) > 0 else 1.0


def arrow_nodes(n: int) -> Ints:
    """Return the indices of those of n nodes along a side that carry an arrow."""
    nodes: Ints = ((np.arange(ARROWS) + 0.5) * n / ARROWS).astype(int)
    return nodes


def draw_bar(
    figure: Figure, axes: Any, image: Any, name: str, dark: bool, *, ends: Literal["neither", "max", "both"] = "max"
) -> None:
    """Draw the colour bar of `image` next to its axes."""
    ink = INK[dark]["text"]
    colours = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.02, extend=ends)
    colours.set_label(name, color=ink, fontsize=8)
    colours.ax.tick_params(colors=ink, labelsize=7.5, width=0.6, length=2.5)
    cast(Any, colours.outline).set(edgecolor=ink, linewidth=0.6)


def arrow_shaft(force: Floats, least: float, most: float) -> Floats:
    """Return the arrow of a force, whose length grows ever more slowly with the force, as on the page; zero for no
    force.
    """
    magnitude = float(np.linalg.norm(force))
    if not (1e-9 < magnitude < math.inf):
        return np.zeros_like(force)
    return force / magnitude * (least + most * (1 - math.exp(-magnitude / 1.6)))


def draw_arrow(axes: Axes, at: Any, tip: Any, colour: str, edge: str, width: float, style: str = "-") -> None:
    """Draw an arrow from `at` to `tip`, (2,) each, `width` points wide, with a rim, clipped to the axes."""
    head = f"-|>,head_length={0.3 + width / 11},head_width={0.15 + width / 20}"
    shaft = {"arrowstyle": head, "color": colour, "linewidth": width, "linestyle": style, "shrinkA": 0, "shrinkB": 0}
    arrow = axes.annotate("", tip, at, arrowprops=shaft, zorder=5, annotation_clip=False).arrow_patch
    if arrow is not None:
        arrow.set_path_effects(rim(width + 1.8, edge))
        arrow.set(clip_on=True, clip_path=axes.patch)


def draw_text(axes: Axes, at: Any, text: str, colour: str, dark: bool, *, offset: Any = (0, 0), **align: Any) -> None:
    """Draw `text` with a rim at `at`, shifted by `offset` points; `align` holds further arguments of `annotate`."""
    align = (
        dict[str, Any]({"ha": "center", "fontsize": 7.5, "fontweight": "bold", "color": colour, "zorder": 6}) | align
    )
    shown = axes.annotate(text, at, xytext=tuple(offset), textcoords="offset points", annotation_clip=True, **align)
    shown.set_path_effects(rim(2.2, INK[dark]["rim"]))
