"""Baselines of score charts, drawn in the same colours and dashes in every chart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from dmlcore.figures.palette import LISTS
from dmlcore.figures.vega_lite import Spec, values
from dmlcore.significance import verdicts

# Colour (Okabe-Ito palette) and dash pattern of each baseline. No other mark of these charts uses these colours, and
# the dashes distinguish baselines without colour.
_INPUTS, _NETWORK, _FEATURES, _WHITENED, _CHANCE = LISTS["baselines"][False]
LOOKS = {
    "inputs": (_INPUTS, [1, 0]),
    "untrained": (_NETWORK, [6, 3]),
    "pretrained": (_NETWORK, [6, 3]),
    "features": (_FEATURES, [6, 3]),
    "pca_whitened": (_FEATURES, [2, 3]),
    "whitened": (_WHITENED, [1, 0]),
    "chance": (_CHANCE, [2, 3]),
}
LEGEND = 480  # in pixels; narrower bars have a legend in one column
Levels = Mapping[str, Mapping[str, float]]  # baseline (key of LOOKS) -> variant -> score in 0..1


def describe(levels: Levels) -> str:
    """Return the baselines as text, with their scores in per cent: "raw inputs 1.59 %, chance 0.41 %"."""
    return ", ".join(_label(name, levels[name]) for name in LOOKS if levels.get(name))


def layers_over_bars(levels: Levels, y: alt.Y) -> list[alt.Chart]:
    """Return a layer that marks the score of each baseline with a vertical line across the bar of each variant.

    Adjacent marks at equal scores form one continuous line. The list is empty if there are no baselines.

    Args:
        levels: Scores by baseline and variant.
        y: The bars' y channel, which encodes "variant".
    """
    there = {name: _label(name, levels[name]) for name in LOOKS if levels.get(name)}
    if not there:
        return []
    rows = [
        {"variant": variant, "value": value, "baseline": label}
        for name, label in there.items()
        for variant, value in levels[name].items()
    ]
    phone = f"width < {LEGEND}"  # width of the bars without their names, also in a narrow column of a wide window
    legend = alt.Legend(
        title=None,
        orient="top",
        symbolType="stroke",
        symbolSize=alt.ExprRef(f"{phone} ? 200 : 500"),
        symbolStrokeWidth=3,
        labelLimit=320,
        labelExpr=f"{phone} ? replace(datum.label, ' network', '') : datum.label",
        columns=alt.ExprRef(f"{phone} ? 1 : 3"),
    )
    colours, dashes = (alt.Scale(domain=list(there.values()), range=[LOOKS[name][i] for name in there]) for i in (0, 1))
    layer = alt.Chart(values(*rows)).mark_rule(strokeWidth=2.5)
    return [
        layer.encode(
            y.bandPosition(0),
            alt.X("value:Q"),
            alt.Y2("variant", bandPosition=1),
            alt.Color("baseline:N", legend=legend, scale=colours),
            alt.StrokeDash("baseline:N", legend=legend, scale=dashes),
            tooltip=[alt.Tooltip("baseline:N"), alt.Tooltip("value:Q", format=".2%", title="score")],
        )
    ]


def layers_over_curves(levels: Mapping[str, float], y: alt.Y) -> list[alt.Chart]:
    """Return layers for a chart of curves: one labelled horizontal line per baseline.

    Args:
        levels: Score of each baseline.
        y: The curves' y channel, which encodes "value".
    """
    channel: Any = y.to_dict()
    layers = curve_level_layers(levels, channel)
    drawn = [alt.Chart.from_dict(layer) for layer in layers]
    for chart, layer in zip(drawn, layers, strict=True):
        # Keep the data inline in the layer; otherwise altair would move it to the data sets at the top level of the
        # chart.
        chart.data = values(*layer["data"]["values"])
    return drawn


def curve_level_layers(levels: Mapping[str, float], y: Spec) -> list[Spec]:
    """Return the layers of `layers_over_curves` as Vega-Lite dictionaries, for charts built without altair."""
    layers: list[Spec] = []
    for name, (colour, dash) in LOOKS.items():
        if name not in levels:
            continue
        data = {"values": [{"value": levels[name], "words": _label(name, {"": levels[name]})}]}
        rule = {"type": "rule", "strokeWidth": 2, "color": colour, "strokeDash": dash}
        text = {"type": "text", "align": "right", "dx": -6, "dy": -8, "fontSize": 12}
        halo = {"stroke": {"expr": "background"}, "strokeWidth": 4, "strokeJoin": "round"}  # covers the grid
        place = {"y": y, "x": {"value": "width"}, "text": {"field": "words", "type": "nominal"}}
        layers += [
            {"data": data, "mark": text | halo, "encoding": place},
            {"data": data, "mark": rule, "encoding": {"y": y}},
            {"data": data, "mark": text | {"color": colour}, "encoding": place},
        ]
    return layers


def _label(name: str, scores: Mapping[str, float]) -> str:
    low, high = min(scores.values()), max(scores.values())
    digits = 1 if high >= 0.1 else 2
    ends = dict.fromkeys((f"{100 * low:.{digits}f}", f"{100 * high:.{digits}f}"))
    return f"{verdicts.NAMES[name].removeprefix('the ')} {' to '.join(ends)} %"
