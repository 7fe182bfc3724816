"""Publication figure of a force field, drawn with matplotlib but without pyplot, so that any thread may draw it.

Equal inputs give byte-identical files: no dates are written, and identifiers are fixed.
"""

from __future__ import annotations

import io
import math
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from dmlcore.catalogue import Slider
from dmlcore.figures import field_layers as layers
from dmlcore.figures import strokes
from dmlcore.figures.field_arrays import (
    NODES,
    Coordinates,
    View,
    about,
    as_json,
    as_npz,
    field_arrays,
    polylines,
    snippet,
)
from dmlcore.figures.field_layers import Shade
from dmlcore.geometry import Probe
from dmlcore.geometry.hardness import hardness
from dmlcore.geometry.margins import RANKING_MARGIN
from dmlcore.losses import TripletLoss
from dmlcore.typing import Arrays

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["about", "as_json", "as_npz", "draw_field", "field_arrays", "polylines", "save_figure", "snippet"]

SHADES: tuple[Shade, ...] = ("energy", "raw", "force", "none")
FORMATS = ("svg", "pdf", "png")
DPI = 200
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "dml-lab",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "axes.titley": 1.0,  # fixed title height; no axes have ticks at the top that a title would have to avoid
}
# held while drawing, because matplotlib's settings and font cache are global to the process
_drawing = threading.RLock()


def draw_field(
    loss: TripletLoss,
    anchor: Coordinates,
    positive: Coordinates,
    negative: Coordinates,
    *,
    probe: Probe = "negative",
    view: View = (0.25, 0.0, 1.6),
    shade: Shade = "energy",
    n: int = NODES,
    contours: Literal["raw", "clamped"] | None = None,
    region: bool = True,
    arrows: bool = True,
    streams: bool = False,
    forces: bool = True,
    decomposed: bool = False,
    discs: bool = False,
    mining: bool = False,
    title: str | None = None,
    dark: bool = False,
    size: float = 5.2,
    plain: bool = False,
) -> Figure:
    """Draw the field that acts on `probe` in the view, ready for `save_figure`.

    Args:
        loss: The triplet loss.
        anchor: The two coordinates of the anchor.
        positive: The two coordinates of the positive.
        negative: The two coordinates of the negative.
        probe: Point moved over the view: "anchor", "positive" or "negative".
        view: Centre x, centre y and half width of the square.
        shade: Quantity shown as colour: "energy" (clamped loss), "raw" (raw loss, signed), "force" or "none".
        n: Nodes along each side.
        contours: Draw equipotential lines of the raw or clamped loss; None for no lines.
        region: Hatch where no force acts on the probe and draw raw = 0 solid, raw = m2 dashed.
        arrows: Draw the direction of the force as arrows.
        streams: Draw streamlines instead of arrows.
        forces: Draw the total force on each of the three points with its magnitude.
        decomposed: Draw the components of these forces along the edges, and the residuals (dotted).
        discs: Draw discs around anchor and positive with radius d_ap + 0.1, in which the ranking loss with margin 0.1
            acts.
        mining: Draw the easy, semi-hard and hard regions (Karaman 2021, Fig. 2.5).
        title: Heading; None for the name of the loss, "" for no heading.
        dark: Use the colours of the dark theme.
        size: Width of the figure in inches.
        plain: Omit formula, caption and colour bar.

    Raises:
        ValueError: If points, view, n, probe, shade or contours are invalid.
    """
    if shade not in SHADES or contours not in (None, "raw", "clamped"):
        raise ValueError(
            f"shade must be one of {SHADES} and contours raw, clamped or None: got {shade!r}, {contours!r}"
        )
    arrays = field_arrays(loss, anchor, positive, negative, probe=probe, view=view, n=n)
    with sheet(size, size * (1.0 if plain else 1.04), dark) as figure:
        axes = figure.add_subplot()
        layers.draw_plane(axes, view, dark)
        top = layers.draw_heat(figure, axes, arrays, shade, loss.m2, dark, bar=not plain) if shade != "none" else 0.0
        # Draw colours below lines, lines below arrows, and the triplet on top.
        if region:
            layers.draw_region(axes, arrays, loss.m2, dark)
        if contours:
            layers.draw_contours(axes, arrays, contours, loss.m2, dark)
        if discs:
            layers.draw_rings(axes, arrays["points"][:2], float(arrays["edges"][0]) + RANKING_MARGIN, dark)
        if mining:
            points = [torch.from_numpy(x) for x in arrays["points"]]
            layers.draw_hardness(axes, arrays, hardness(loss, points[0], points[1], points[2], probe), dark)
        if streams:
            layers.draw_streams(axes, arrays, dark)
        elif arrows:
            layers.draw_arrows(axes, arrays, view, dark)
        layers.draw_edges(axes, arrays, dark)
        if decomposed:
            layers.draw_parts(axes, arrays, view, dark)
        if forces:
            layers.draw_resultants(axes, arrays, view, dark)
        layers.draw_points(axes, arrays, probe, dark)
        if title != "":
            write_title(axes, loss, title, dark, formula=not plain)
        if not plain:
            _caption(figure, loss, probe, shade, top, arrays, region, dark)
    return figure


def save_figure(figure: Figure, target: str | Path | None = None, format: str = "svg", dpi: int = DPI) -> bytes:
    """Return the bytes of the figure as svg, pdf or png, and write them to `target` if given.

    Equal figures give equal bytes.

    Args:
        figure: The figure.
        target: Path of the file to write; its suffix then determines the format.
        format: "svg", "pdf" or "png".
        dpi: Pixels per inch, also of the heat map within svg and pdf.

    Raises:
        ValueError: If the format is not supported.
    """
    if target is not None:
        format = Path(target).suffix[1:]
    if format not in FORMATS:
        raise ValueError(f"a figure is saved as {', '.join(FORMATS)}, got {format!r}")
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    file = io.BytesIO()
    with figure_style():
        if format == "pdf":
            embed_glyphs_alone()
        figure.savefig(file, format=format, facecolor=figure.get_facecolor(), metadata=undated[format], dpi=dpi)
    if target is not None:
        Path(target).write_bytes(file.getvalue())
    return file.getvalue()


@contextmanager
def figure_style() -> Iterator[None]:
    """Apply the matplotlib settings shared by all figures; only one thread at a time can be inside the context."""
    with _drawing:
        import matplotlib

        _read_formulas_once()
        with matplotlib.rc_context(STYLE):
            yield


@cache
def _read_formulas_once() -> None:
    """Make all matplotlib parsers share one cache of parsed formulas.

    By default each saved file uses a new parser with an empty cache, and parsing formulas takes a third of the saving
    time.
    """
    from matplotlib.mathtext import MathTextParser

    kind = attrgetter("_output_type")
    setattr(MathTextParser, "__hash__", lambda self: hash(kind(self)))  # noqa: B010
    setattr(MathTextParser, "__eq__", lambda self, other: kind(self) == kind(other))  # noqa: B010


@cache
def embed_glyphs_alone() -> None:
    """Drop the layout tables of fonts embedded in PDF files; subsetting them takes half of the saving time."""
    from fontTools.subset import Options

    Options._drop_tables_default = [*Options._drop_tables_default, "GDEF", "GPOS", "GSUB", "kern"]


@contextmanager
def sheet(width: float, height: float, dark: bool) -> Iterator[Figure]:
    """Yield an empty figure of `width` x `height` inches, with the matplotlib settings of all figures applied."""
    with figure_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor=strokes.INK[dark]["page"])
        yield figure
        if (layout := figure.get_layout_engine()) is not None:
            # run the layout once and then disable it; otherwise the layout would change with each save
            layout.execute(figure)
        figure.set_layout_engine(None)  # with "none" instead of None, each save would draw the figure twice


def _caption(
    figure: Figure, loss: TripletLoss, probe: Probe, shade: Shade, top: float, arrays: Arrays, region: bool, dark: bool
) -> None:
    colour = {"energy": "clamped loss", "raw": "loss before the clamp", "force": "force on the probe"}.get(shade)
    keys = [f"Scanned by the {probe}" + (f"; colour: {colour}, to {top:.3g}" if colour else "")]
    if region:
        keys += layers.boundary_words(arrays)
    write_caption(figure, f"{'; '.join(keys)}. {loss.formula.source}.", dark, first=values(loss))


def write_title(axes: Axes, loss: TripletLoss, title: str | None, dark: bool, *, formula: bool = True) -> None:
    """Write the heading above the axes: `title`, or the loss name if `title` is None, and then the formula."""
    text = (title or loss.formula.title) + (f"\n$E = {energy_latex(loss)}$" if formula else "")
    axes.set_title(text, color=strokes.INK[dark]["text"], fontsize=9.5, loc="left")


def write_caption(figure: Figure, words: str, dark: bool, *, first: str = "", width: int = 90) -> None:
    """Write the line `first`, which may be mathtext, and `words`, wrapped at `width` characters, below a figure."""
    text = "\n".join(x for x in [first, *textwrap.wrap(words, width)] if x)
    figure.supxlabel(text, fontsize=7, color=strokes.INK[dark]["text"], x=0.02, ha="left", linespacing=1.45)


def values(loss: TripletLoss) -> str:
    r"""Return the hyper-parameters as one line with mathtext symbols, such as "$s$ = 1, $\rho$ = 1.714"."""
    parts = []
    for name, parameter in loss.formula.parameters.items():
        value = loss.hyper[name]
        if name == "m2" and value == math.inf:
            continue
        number = value if isinstance(value, str) else f"{value:.5g}".replace("-", "−")
        symbol = parameter.symbol if isinstance(parameter, Slider) else rf"\mathrm{{{name}}}"
        parts.append(f"${symbol}$ = {number}")
    return ", ".join(parts)


def formula_svg(loss: TripletLoss, *, dark: bool = False) -> str:
    """Return the formula of the energy as an SVG element, for HTML files that load no LaTeX renderer."""
    with figure_style():
        from matplotlib.font_manager import FontProperties
        from matplotlib.mathtext import math_to_image

        drawn, ink = io.StringIO(), strokes.INK[dark]["text"]
        math_to_image(f"$E = {energy_latex(loss)}$", drawn, prop=FontProperties(size=15), format="svg", color=ink)
    text = drawn.getvalue()
    return text[text.index("<svg") :]


def energy_latex(loss: TripletLoss) -> str:
    """Return the energy of the loss in the subset of LaTeX that matplotlib supports."""
    latex = loss.formula.energy_latex.replace(r"\tfrac12", r"\frac{1}{2}")
    for unknown, known in ((r"\tfrac", r"\frac"), (r"\lVert", r"\Vert"), (r"\rVert", r"\Vert"), (r"\!", "")):
        latex = latex.replace(unknown, known)
    return latex
