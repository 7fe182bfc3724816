"""Publication figure of one step of a charge simulation: the points in the plane, and the density of all triplets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dmlcore.figures import field_layers as layers
from dmlcore.figures import strokes
from dmlcore.figures.fields import save_figure, sheet, values, write_caption
from dmlcore.figures.palette import LISTS
from dmlcore.simulation import ChargesFrame, Simulation, clamp_lines, depends_on, phase_portrait
from dmlcore.typing import Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_charges", "save_figure"]


TAIL = 40  # number of most recent steps that a point's trail shows
# Okabe-Ito colours of the classes; the key is True for the dark theme. Each class also has its own marker, as on the
# page (assets/src/losses/charges/draw.ts).
COLOURS = LISTS["classes"]
MARKERS = ("o", "s", "^", "D", "X", "v", "*", "P")


def draw_charges(
    simulation: Simulation,
    step: int,
    *,
    trails: bool = True,
    arrows: bool = False,
    circles: bool = False,
    dark: bool = False,
    size: float = 4.4,
) -> Figure:
    """Draw the points at `step` and, to their right, the density of all triplets over (d_ap, d_an).

    The figure is ready for `save_figure`. If the simulation has not reached `step` yet, the missing steps are computed.
    Lines over the density show where raw, the loss before the clamp, reaches a bound of the clamp: raw = 0 solid, raw =
    m2 dashed.

    Args:
        simulation: The simulation to draw.
        step: Number of the step.
        trails: Draw the path of each point over the last 40 steps.
        arrows: Draw the force on each point.
        circles: Draw a circle around the mean of each class that reaches its farthest point.
        dark: Use the colours of the dark theme.
        size: Width of each of the two charts in inches.

    Raises:
        ValueError: If the step is outside the simulation.
    """
    frame = simulation.frame(step)
    law = simulation.spec.law_at(step)
    loss = law.module()
    with sheet(2 * size, size * 1.2, dark) as figure:
        ink = strokes.INK[dark]
        left, right = figure.subplots(1, 2)
        # Left: the points. Later layers cover earlier ones.
        half = max(float(np.abs(frame.positions).max()) * 1.08, 0.05)
        layers.draw_plane(left, (0.0, 0.0, half), dark)
        if law.normalise != "none":
            _circle(left, np.zeros(2), 1.0, ink["text"], "-", 0.4)
        if trails:
            _trails(left, simulation, step, dark)
        if circles:
            for c, (mean, radius) in enumerate(zip(frame.means, frame.radii, strict=True)):
                _circle(left, mean, float(radius), COLOURS[dark][c], "--", 1.0)
                left.plot(*mean, "+", color=COLOURS[dark][c], markersize=6, zorder=3)
        if arrows:
            _arrows(left, frame, half, dark)
        _points(left, frame, simulation.labels, dark)
        left.set_title(f"{loss.formula.title}, step {step}\n{values(loss)}", color=ink["text"], fontsize=9, loc="left")
        # Right: the density of triplets. The caption states the assumptions under which the lines for the clamp are
        # valid.
        share = _portrait(figure, right, simulation, frame, loss, dark)
        scores = f"loss {frame.loss:.4g}, active triplets {frame.active:.1%}, MAP@R {frame.map_at_r:.3f}"
        words = (
            f"{simulation.spec.classes} classes of {simulation.spec.per_class} points, start {simulation.spec.start}, "
            f"seed {simulation.spec.seed}; {law.optimiser}, step size {law.step_size:g}; {scores}. Right: all "
            f"triplets, {share:.1%} with a negative nearer than the positive; solid: loss = 0, dashed: upper clamp"
        )
        asked = depends_on(loss)
        assumed = [
            *(["d(p, n) = d(a, n)"] if "pn" in asked else []),
            *(["|a| = |p| = |n| = 1"] if asked & {"a", "p", "n"} else []),
        ]
        words += f" (drawn for {' and '.join(assumed)})" if assumed else ""
        write_caption(figure, f"{words}. {loss.formula.source}.", dark, width=int(20 * 2 * size))
    return figure


def _points(axes: Axes, frame: ChargesFrame, labels: Ints, dark: bool) -> None:
    for c in range(int(labels.max()) + 1):
        look: dict[str, Any] = {"color": COLOURS[dark][c], "marker": MARKERS[c], "linestyle": "none"}
        size = 4.2 if len(labels) > 160 else 5.4
        axes.plot(
            *frame.positions[labels == c].T, **look, markersize=size, zorder=5,
            markeredgecolor=strokes.INK[dark]["rim"], markeredgewidth=0.5,
        )  # fmt: skip


def _trails(axes: Axes, simulation: Simulation, step: int, dark: bool) -> None:
    from matplotlib.collections import LineCollection

    # shape (N, K, 2): K successive positions per point
    passed = np.stack([f.positions for f in simulation.frames[max(0, step - TAIL) : step + 1]], axis=1)
    colours = [COLOURS[dark][label] for label in simulation.labels]
    axes.add_collection(LineCollection(list(passed), colors=colours, linewidths=0.7, alpha=0.35, zorder=2))


def _circle(axes: Axes, centre: Any, radius: float, colour: str, style: str, width: float) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle(centre, radius, fill=False, edgecolor=colour, linestyle=style, linewidth=width, zorder=3))


def _arrows(axes: Axes, frame: ChargesFrame, half: float, dark: bool) -> None:
    """Draw each force as an arrow of length |F| / (|F| + 1) times a sixteenth of the width of the view."""
    size = np.linalg.norm(frame.force, axis=1, keepdims=True)
    shaft = frame.force / (size + 1) * half / 8
    felt = size[:, 0] > 1e-3
    axes.quiver(
        *frame.positions[felt].T, *shaft[felt].T, angles="xy", scale_units="xy", scale=1, zorder=4,
        color=strokes.INK[dark]["force"], units="width", width=0.003, headwidth=4, headlength=4.5, minlength=0.3,
    )  # fmt: skip


def _portrait(figure: Figure, axes: Axes, simulation: Simulation, frame: ChargesFrame, loss: Any, dark: bool) -> float:
    from matplotlib.colors import LogNorm

    ink = strokes.INK[dark]
    portrait = phase_portrait(frame.positions.astype(np.float64), simulation.labels)
    image = axes.imshow(
        np.ma.masked_equal(portrait.counts, 0), extent=(0, portrait.reach, 0, portrait.reach), origin="lower",
        cmap=strokes.ramp(dark, first=1), norm=LogNorm(1, max(float(portrait.counts.max()), 2)),
        interpolation="nearest", zorder=1,
    )  # fmt: skip
    strokes.draw_bar(figure, axes, image, "triplets", dark, ends="neither")
    axes.set_facecolor(strokes.RAMP[dark][0])
    axes.plot([0, portrait.reach], [0, portrait.reach], color=ink["text"], linewidth=0.8, linestyle=":", zorder=2)
    for lines, dashes in zip(clamp_lines(loss, portrait.reach), layers.BOUNDARIES.values(), strict=True):
        for line in lines:
            axes.plot(*line.T, color=ink["negative"], linewidth=1.5, linestyle=dashes, zorder=3)
    axes.set(xlim=(0, portrait.reach), ylim=(0, portrait.reach), aspect="equal")
    strokes.draw_frame(axes, dark, "d(a, p), to the positive", "d(a, n), to the negative")
    return portrait.violated
