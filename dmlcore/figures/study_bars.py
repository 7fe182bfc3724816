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
TITLE = "test MAP@R, %"
INK = strokes.INK[False]


def draw_bars(values: Scored, levels: Mapping[str, float]) -> Figure:
    """Draw the mean score of each variant as a bar, best on top, with one dot per seed.

    The figure is ready for `save_figure`.

    Args:
        values: Scores of the seeds of each variant, in 0..1.
        levels: Score of each baseline, in 0..1.
    """
    with sheet(6.0, 1.1 + 0.16 * len(values), False) as figure:
        axes = figure.add_subplot(facecolor=INK["page"])
        _bars(axes, values, levels)
        axes.set_xlabel(f"{TITLE}; dots: seeds", fontsize=8, color=INK["text"])
        axes.legend(fontsize=7, loc="lower right")
    return figure


def draw_studies(charts: Mapping[str, tuple[Scored, Mapping[str, float]]]) -> Figure:
    """Draw several studies side by side, each as `draw_bars` does, but without the names of variants.

    Args:
        charts: For each chart title, the scores of the variants and of the baselines.
    """
    with sheet(6.6, 4.4, False) as figure:
        for place, (name, (values, levels)) in enumerate(charts.items(), 1):
            axes = figure.add_subplot(1, len(charts), place, facecolor=INK["page"])
            _bars(axes, values, levels)
            axes.set_yticks([])
            axes.set_title(name, fontsize=9, color=INK["text"])
            axes.set_xlabel(f"{TITLE}; dots: seeds\none bar per variant, best on top", fontsize=7, color=INK["text"])
            axes.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    return figure


def _bars(axes: Axes, values: Scored, levels: Mapping[str, float]) -> None:
    order = sorted(values, key=lambda name: float(np.mean(values[name])))
    axes.barh(order, [100 * float(np.mean(values[name])) for name in order], color=COLOURS[0], height=0.7)
    for row, name in enumerate(order):
        axes.plot(
            100 * np.array(values[name]),
            np.full(len(values[name]), row),
            ".",
            color=strokes.INK[False]["seeds"],
            markersize=3,
        )
    for dash, (name, level) in zip(DASHES, levels.items(), strict=False):
        label = f"{verdicts.NAMES.get(name, name)} {100 * level:.1f}"
        axes.axvline(100 * level, color=INK["text"], linestyle=dash, linewidth=1, label=label)
    axes.tick_params(labelsize=6, colors=INK["text"])
    axes.set_xlim(left=0)
    axes.margins(y=0.01)
