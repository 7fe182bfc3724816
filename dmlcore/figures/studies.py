"""Charts of a study: validation curves of its variants over seeds, and bars with their spread (Vega-Lite)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dmlcore import verdicts
from dmlcore.figures import baselines
from dmlcore.figures.baselines import Levels
from dmlcore.figures.curves import COLOURS, DASHES, Columns, Spec

CEILING = "#7F7F7F"
STEP = 26  # pixels from bar to bar


@dataclass(frozen=True)
class SeedCurve:
    """Validation MAP@R of one run: steps (n,) ascending, values (n,) in 0..1."""

    variant: str
    seed: int
    steps: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True)
class Bar:
    """A variant with the values of its seeds, in 0..1."""

    variant: str
    values: Sequence[float]


def mean_curve(curves: Sequence[SeedCurve]) -> tuple[list[int], list[float]]:
    """(steps, means) over the steps that every curve has."""
    tables = [dict(zip(curve.steps, curve.values, strict=True)) for curve in curves]
    common = sorted(set.intersection(*(set(table) for table in tables))) if tables else []
    return common, [float(np.mean([table[step] for table in tables])) for step in common]


def ceiling_of(curves: Sequence[SeedCurve], variant: str) -> float | None:
    """Mean over the seeds of the best validation of a variant, or None without it."""
    best = [max(curve.values) for curve in curves if curve.variant == variant and len(curve.values)]
    return float(np.mean(best)) if best else None


def curves(
    found: Sequence[SeedCurve],
    *,
    ceiling: str | None = None,
    against: Mapping[str, float] | None = None,
    height: int = 300,
) -> tuple[Spec, Columns]:
    """Thin lines for the seeds, a thick one for their mean, by variant; `ceiling`: the variant of the level line.

    against: the score of each baseline on the validation part.
    """
    names = list(dict.fromkeys(curve.variant for curve in found))
    rows: list[tuple[str, str, int, float, str]] = []
    for name in names:
        own = [curve for curve in found if curve.variant == name]
        for curve in own:
            rows += [(name, f"seed {curve.seed}", s, v, "seed") for s, v in zip(curve.steps, curve.values, strict=True)]
        rows += [(name, f"mean of {len(own)}", s, v, "mean") for s, v in zip(*mean_curve(own), strict=True)]
    columns: Columns = {
        key: np.array([row[i] for row in rows]) for i, key in enumerate(("variant", "line", "step", "value", "kind"))
    }
    colour = _by_variant(names, ceiling)
    x = {
        "field": "step",
        "type": "quantitative",
        "title": "step",
        "axis": {"format": ",d", "tickMinStep": 1},
        "scale": {"nice": False},
    }
    y = {
        "field": "value",
        "type": "quantitative",
        "title": "validation MAP@R",
        "scale": {"zero": False},
        "axis": {"format": ".3~%", "tickCount": 6},
    }
    tooltip = [
        {"field": "variant", "type": "nominal"},
        {"field": "line", "type": "nominal", "title": "run"},
        {"field": "step", "type": "quantitative", "format": ",d"},
        {"field": "value", "type": "quantitative", "title": "MAP@R", "format": ".1%"},
    ]
    both = {"x": x, "y": y, "tooltip": tooltip, **colour}
    layers: list[Spec] = [
        {
            "transform": [{"filter": "datum.kind === 'seed'"}],
            "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.45},
            "encoding": both | {"detail": {"field": "line"}},
        },
        {
            "transform": [{"filter": "datum.kind === 'mean'"}],
            "mark": {"type": "line", "strokeWidth": 3, "point": {"size": 34, "filled": True}},
            "encoding": both,
        },
    ]
    layers += baselines.across(against or {}, y)
    level = ceiling_of(found, ceiling) if ceiling else None
    if level is not None:
        words = f"{ceiling}: best validation {100 * level:.1f} %"
        flat = {"data": {"values": [{"value": level, "words": words}]}}
        layers += [
            flat | {"mark": {"type": "rule", "strokeDash": [6, 4], "color": CEILING, "size": 2}, "encoding": {"y": y}},
            flat
            | {
                "mark": {"type": "text", "align": "left", "dx": 6, "dy": -7, "color": CEILING, "fontSize": 12},
                "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "words"}},
            },
        ]
    return {"height": height, "layer": layers, "autosize": {"type": "fit-x", "contains": "padding"}}, columns


def bars(
    found: Sequence[Bar],
    *,
    title: str = "test MAP@R",
    ceiling: str | None = None,
    against: Levels | None = None,
    top: Sequence[str] | None = None,
    over: str = "seeds",
) -> tuple[Spec, Columns]:
    """One bar per variant, the best on top: mean, plus and minus a standard deviation of the sample, the seeds.

    against: baselines, drawn through the bars. top: the variants in full colour, others pale; None: all of them.
    over: what the values of a variant are of, in the plural.
    """
    order = sorted((bar for bar in found if len(bar.values)), key=lambda bar: -float(np.mean(bar.values)))
    names = [bar.variant for bar in order]
    means = np.array([np.mean(bar.values) for bar in order])
    spread = np.array([np.std(bar.values, ddof=1) if len(bar.values) > 1 else 0.0 for bar in order])
    count = np.array([len(bar.values) for bar in order])
    label = [verdicts.spread(*verdicts.mean_and_deviation(bar.values)) for bar in order]
    columns: Columns = {
        "variant": np.array(names),
        "mean": means,
        "low": means - spread,
        "high": means + spread,
        "end": np.array([max(*bar.values, m + s) for bar, m, s in zip(order, means, spread, strict=True)]),
        "seeds": count,
        "opacity": np.array([0.85 if top is None or name in top else 0.4 for name in names]),
        "label": np.array(label),
    }
    y = {"field": "variant", "type": "nominal", "sort": names, "title": None, "axis": {"labelLimit": 200}}
    y["scale"] = {"paddingInner": 0, "paddingOuter": 0}  # strokes of equal baselines join
    seeds_of = f"{count.min()}" if len(set(count)) == 1 else f"{count.min()} to {count.max()}"
    noise = f"mean ± deviation of {seeds_of} {over}" if count.max() > 1 else "one seed each: noise unknown"
    axis = {"title": f"{title} · {noise}", "axis": {"format": ".3~%", "orient": "top"}}
    tooltip = [
        {"field": "variant", "type": "nominal"},
        {"field": "mean", "type": "quantitative", "format": ".2%"},
        {"field": "label", "type": "nominal", "title": "mean ± deviation, %"},
        {"field": "seeds", "type": "quantitative"},
    ]
    seeds = [{"variant": bar.variant, "value": float(value)} for bar in order for value in bar.values]
    colour = {"condition": {"test": f"datum.variant === {_text(ceiling)}", "value": CEILING}, "value": COLOURS[0]}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": {"band": 0.68}},
            "encoding": {
                "x": {"field": "mean", "type": "quantitative", **axis},
                "color": colour,
                "opacity": {"field": "opacity", "type": "quantitative", "scale": None, "legend": None},
                "tooltip": tooltip,
            },
        },
        {
            "transform": [{"filter": "datum.seeds > 1"}],
            "mark": {"type": "rule", "strokeWidth": 2, "color": "#D55E00"},
            "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
        },
        {
            "data": {"values": seeds},
            "mark": {"type": "point", "filled": True, "size": 22, "color": "#D55E00", "opacity": 0.9},
            "encoding": {"x": {"field": "value", "type": "quantitative"}},
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 8, "fontSize": 12, "color": CEILING},
            "encoding": {"x": {"field": "end", "type": "quantitative"}, "text": {"field": "label"}},
        },
    ]
    for layer in layers:
        layer["encoding"]["y"] = y
    layers += baselines.beside_bars(against or {}, y)
    spec = {"height": {"step": STEP}, "layer": layers, "autosize": {"type": "fit-x", "contains": "padding"}}
    return spec, columns


def _by_variant(names: Sequence[str], ceiling: str | None) -> Spec:
    others = [name for name in names if name != ceiling]
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(others)} | {ceiling: CEILING}
    legend = {"title": None, "orient": "top", "symbolType": "stroke", "symbolSize": 500, "symbolStrokeWidth": 3}
    shared: dict[str, Any] = {"field": "variant", "type": "nominal", "legend": legend | {"labelLimit": 300}}
    dashes = [DASHES[i % len(DASHES)] for i in range(len(names))]
    return {
        "color": shared | {"scale": {"domain": list(names), "range": [colours[name] for name in names]}},
        "strokeDash": shared | {"scale": {"domain": list(names), "range": dashes}},
    }


def _text(name: str | None) -> str:
    """A name as a string in a Vega expression."""
    return "'" + (name or "").replace("\\", "").replace("'", "") + "'"
