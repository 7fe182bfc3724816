"""Baselines in a chart of scores: one look for all of them (Vega-Lite)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dmlcore import verdicts

if TYPE_CHECKING:
    from dmlcore.figures.curves import Spec

# Okabe-Ito colours that no other mark of these charts has, and dashes, so that colour is never alone.
LOOKS = {
    "inputs": ("#009E73", [1, 0]),
    "untrained": ("#CC79A7", [6, 3]),
    "pretrained": ("#CC79A7", [6, 3]),
    "chance": ("#7F7F7F", [2, 3]),
}
Levels = Mapping[str, Mapping[str, float]]  # baseline, as in LOOKS -> variant -> score in 0..1


def words(levels: Levels) -> str:
    """The baselines as text, with their scores in per cent: "raw inputs 1.59 %, chance 0.41 %"."""
    return ", ".join(_label(name, levels[name]) for name in LOOKS if levels.get(name))


def beside_bars(levels: Levels, y: Spec) -> list[Spec]:
    """A layer for horizontal bars: for each variant a stroke through its band at each baseline.

    Strokes of equal scores join to one line through the whole chart. y: the channel of the bars, by "variant".
    """
    there = [name for name in LOOKS if levels.get(name)]
    if not there:
        return []
    rows = [
        {"variant": variant, "value": value, "baseline": _label(name, levels[name])}
        for name in there
        for variant, value in levels[name].items()
    ]
    tooltip = [
        {"field": "baseline", "type": "nominal"},
        {"field": "value", "type": "quantitative", "format": ".2%", "title": "score"},
    ]
    layer: Spec = {
        "data": {"values": rows},
        "mark": {"type": "rule", "strokeWidth": 2.5},
        "encoding": {
            "x": {"field": "value", "type": "quantitative"},
            "y": y | {"bandPosition": 0},
            "y2": {"field": "variant", "bandPosition": 1},
            "tooltip": tooltip,
            **_looks(there, levels),
        },
    }
    return [layer]


def across(levels: Mapping[str, float], y: Spec) -> list[Spec]:
    """Layers for curves: a level line with its name at each baseline. y: the channel of the curves, of "value"."""
    layers: list[Spec] = []
    for name in LOOKS:
        if name in levels:
            colour, dash = LOOKS[name]
            rows = {"values": [{"value": levels[name], "words": _label(name, {"": levels[name]})}]}
            mark = {"type": "rule", "strokeWidth": 2, "color": colour, "strokeDash": dash}
            text = {"type": "text", "align": "right", "dx": -6, "dy": -8, "color": colour, "fontSize": 12}
            place = {"y": y, "x": {"value": "width"}, "text": {"field": "words"}}
            layers += [
                {"data": rows, "mark": mark, "encoding": {"y": y}},
                {"data": rows, "mark": text, "encoding": place},
            ]
    return layers


def _label(name: str, scores: Mapping[str, float]) -> str:
    low, high = min(scores.values()), max(scores.values())
    digits = 1 if high >= 0.1 else 2
    ends = dict.fromkeys((f"{100 * low:.{digits}f}", f"{100 * high:.{digits}f}"))
    return f"{verdicts.NAMES[name].removeprefix('the ')} {' to '.join(ends)} %"


def _looks(there: Sequence[str], levels: Levels) -> Spec:
    domain = [_label(name, levels[name]) for name in there]
    legend = {"title": None, "orient": "top", "symbolType": "stroke", "symbolSize": 500, "symbolStrokeWidth": 3}
    field = {"field": "baseline", "type": "nominal", "legend": legend | {"labelLimit": 320, "columns": 1}}
    return {
        "color": field | {"scale": {"domain": domain, "range": [LOOKS[name][0] for name in there]}},
        "strokeDash": field | {"scale": {"domain": domain, "range": [LOOKS[name][1] for name in there]}},
    }
