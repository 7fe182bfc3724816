"""Publication figure of the results of a study: one bar per variant, one dot per seed, and one line per baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dmlcore.figures import strokes
from dmlcore.figures.curves import COLOURS
from dmlcore.figures.fields import sheet
from dmlcore.significance import verdicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scored = Mapping[str, Sequence[float]]  # variant -> scores of its seeds, in 0..1
DASHES = ("--", "-.", ":")


def draw_bars(
    values: Scored,
    levels: Mapping[str, float],
    *,
    title: str = "test MAP@R, %",
    dark: bool = False,
    width: float = 6.0,
) -> Figure:
    """Draw the mean score of each variant as a bar, best on top, with one dot per seed.

    The figure is ready for `save_figure`.

    Args:
        values: Scores of the seeds of each variant, in 0..1.
        levels: Score of each baseline, in 0..1.
        title: Name of the score.
        dark: Use the colours of the dark theme.
        width: Width in inches.
    """
    with sheet(width, 1.1 + 0.16 * len(values), dark) as figure:
        axes = figure.add_subplot(facecolor=strokes.INK[dark]["page"])
        _bars(axes, values, levels, dark)
        axes.set_xlabel(f"{title}; dots: seeds", fontsize=8, color=strokes.INK[dark]["text"])
        axes.legend(fontsize=7, loc="lower right")
    return figure


def draw_studies(
    charts: Mapping[str, tuple[Scored, Mapping[str, float]]],
    *,
    title: str = "test MAP@R, %",
    dark: bool = False,
    width: float = 6.6,
    height: float = 4.4,
) -> Figure:
    """Draw several studies side by side, each as `draw_bars` does, but without the names of variants.

    Args:
        charts: For each chart title, the scores of the variants and of the baselines.
        title: Name of the score.
        dark: Use the colours of the dark theme.
        width: Width in inches.
        height: Height in inches.
    """
    ink = strokes.INK[dark]
    with sheet(width, height, dark) as figure:
        for place, (name, (values, levels)) in enumerate(charts.items(), 1):
            axes = figure.add_subplot(1, len(charts), place, facecolor=ink["page"])
            _bars(axes, values, levels, dark)
            axes.set_yticks([])
            axes.set_title(name, fontsize=9, color=ink["text"])
            axes.set_xlabel(f"{title}; dots: seeds\none bar per variant, best on top", fontsize=7, color=ink["text"])
            axes.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    return figure


def _bars(axes: Axes, values: Scored, levels: Mapping[str, float], dark: bool) -> None:
    ink = strokes.INK[dark]
    order = sorted(values, key=lambda name: float(np.mean(values[name])))
    axes.barh(order, [100 * float(np.mean(values[name])) for name in order], color=COLOURS[0], height=0.7)
    for row, name in enumerate(order):
        axes.plot(100 * np.array(values[name]), np.full(len(values[name]), row), ".", color="#D55E00", markersize=3)
    for dash, (name, level) in zip(DASHES, levels.items(), strict=False):
        label = f"{verdicts.NAMES.get(name, name)} {100 * level:.1f}"
        axes.axvline(100 * level, color=ink["text"], linestyle=dash, linewidth=1, label=label)
    axes.tick_params(labelsize=6, colors=ink["text"])
    axes.set_xlim(left=0)
    axes.margins(y=0.01)
