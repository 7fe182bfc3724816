"""Publication figures of one step of a recorded training run: projected samples and proxies, or ensemble weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dmlcore.figures import strokes
from dmlcore.figures.fields import save_figure, sheet
from dmlcore.figures.palette import LISTS
from dmlcore.typing import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_ensemble", "draw_projection", "save_figure"]

# Colours by class, as on the page (assets/src/lessons/recording/recording.ts).
COLOURS = LISTS["recording"][False]
DASHES = ("-", "--", "-.", ":")


def draw_projection(
    points: Floats, labels: Ints, proxies: Floats, *, words: str, event: str, measured: str, dark: bool = False
) -> Figure:
    """Draw projected samples as dots in the unit disc and projected proxies as diamonds, coloured by class.

    Args:
        points: Projected samples, shape (n, 2).
        labels: Class of each sample, shape (n,).
        proxies: Projected proxies, shape (classes, P, 2).
        words: Text at the left of the heading.
        event: Text at the right of the heading.
        measured: Line of measured values below the heading.
        dark: Use the colours of the dark theme.
    """
    with sheet(5.2, 5.6, dark) as figure:
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.03, 0.02, 0.94, 0.87))
        axes.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
        axes.axis("off")
        turn = np.linspace(0, 2 * np.pi, 200)
        ink = strokes.INK[dark]["text"]
        axes.plot(np.cos(turn), np.sin(turn), color=ink, linewidth=0.6, alpha=0.5)
        for label, own in enumerate(proxies):
            colour = COLOURS[label % len(COLOURS)]
            mine = points[labels == label]
            axes.scatter(mine[:, 0], mine[:, 1], s=9, color=colour, alpha=0.55, linewidths=0)
            axes.scatter(own[:, 0], own[:, 1], s=70, marker="D", color=colour, edgecolors=ink, linewidths=1.0, zorder=3)
        figure.text(0.03, 0.955, words, color=ink, size=13, weight="bold")
        figure.text(0.97, 0.955, event, color=ink, size=11, ha="right")
        figure.text(0.03, 0.912, measured, color=ink, size=11)
    return figure


def draw_ensemble(names: Sequence[str], steps: Sequence[int], weights: Floats, relative: Floats, at: int) -> Figure:
    """Draw the ensemble weights of M losses over S steps and, to their right, each loss relative to its running mean.

    Args:
        names: Names of the losses, length M.
        steps: Steps of the recording, length S.
        weights: Ensemble weights, shape (S, M).
        relative: Each loss divided by its mean over the steps so far, shape (S, M).
        at: Step to mark with a vertical line.
    """
    with sheet(8.2, 3.8, False) as figure:
        left, right = figure.subplots(1, 2)
        for axes, values, title in ((left, weights, "weight"), (right, relative, "loss over its mean so far")):
            _curves(axes, names, steps, values, title)
            axes.axvline(at, color=strokes.INK[False]["text"], linewidth=0.8)
        left.legend(fontsize=8, frameon=False)
    return figure


def _curves(axes: Axes, names: Sequence[str], steps: Sequence[int], values: Floats, title: str) -> None:
    for number, name in enumerate(names):
        axes.plot(steps, values[:, number], DASHES[number % len(DASHES)], color=COLOURS[number], label=name)
    axes.set(title=title, xlabel="step", ylim=(0, 1.15 * float(np.quantile(values, 0.995))))
