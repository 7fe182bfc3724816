"""Charts of a study: validation curves of each variant and seed, and bars of mean scores with their spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np

from dmlcore.figures import baselines
from dmlcore.figures.baselines import Levels
from dmlcore.figures.curves import COLOURS, DASHES
from dmlcore.figures.palette import INK
from dmlcore.figures.vega_lite import FIT, NARROW, ROWS, Columns, Spec, cycle, ink, specification, values
from dmlcore.significance import verdicts

CEILING = INK[False]["quiet"]
SEEDS = INK[False]["seeds"]
STEP, LEAST_STEP = 26, 13  # in pixels: default height per bar, and its minimum if there are many bars
# maximum height of all bars in pixels unless LEAST_STEP requires more, so that the first and last bar fit on one screen
IN_SIGHT = 480
# in pixels; the title at the right end is some pixels wider than Vega measures
PADDING = {"left": 5, "right": 9, "top": 5, "bottom": 5}


@dataclass(frozen=True)
class SeedCurve:
    """Validation MAP@R of one run, in 0..1, at ascending steps."""

    variant: str
    seed: int
    steps: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True)
class Bar:
    """A variant of a study with the score of each of its seeds, in 0..1."""

    variant: str
    values: Sequence[float]


def mean_curve(curves: Sequence[SeedCurve]) -> tuple[list[int], list[float]]:
    """Return the steps that all curves have in common, and the mean value of the curves at each of these steps."""
    tables = [dict(zip(curve.steps, curve.values, strict=True)) for curve in curves]
    common = sorted(set.intersection(*(set(table) for table in tables))) if tables else []
    return common, [float(np.mean([table[step] for table in tables])) for step in common]


def ceiling_of(curves: Sequence[SeedCurve], variant: str) -> float | None:
    """Return the mean over a variant's seeds of each seed's best validation score; None if it has no curves."""
    best = [max(curve.values) for curve in curves if curve.variant == variant and len(curve.values)]
    return float(np.mean(best)) if best else None


def ceilings(curves: Sequence[SeedCurve]) -> dict[str, float | None]:
    """Return, for each variant, the mean over its seeds of the best validation score, in order of appearance."""
    return {name: ceiling_of(curves, name) for name in dict.fromkeys(curve.variant for curve in curves)}


def curves(
    seed_curves: Sequence[SeedCurve],
    *,
    ceiling: str | None = None,
    against: Mapping[str, float] | None = None,
) -> tuple[Spec, Columns]:
    """Return a chart with a thin line for each seed and a thick line for the mean over seeds, coloured by variant.

    Args:
        seed_curves: The curves of all seeds of all variants.
        ceiling: Reference variant, whose best validation score is also drawn as a horizontal line; None for no line.
        against: Score of each baseline on the validation split.
    """
    # For each variant in turn, the rows of all seeds, followed by the rows of their mean.
    names = list(dict.fromkeys(curve.variant for curve in seed_curves))
    rows: list[tuple[str, str, int, float, str]] = []
    for name in names:
        own = [curve for curve in seed_curves if curve.variant == name]
        for curve in own:
            rows += [(name, f"seed {curve.seed}", s, v, "seed") for s, v in zip(curve.steps, curve.values, strict=True)]
        rows += [(name, f"mean of {len(own)}", s, v, "mean") for s, v in zip(*mean_curve(own), strict=True)]
    columns: Columns = {
        key: np.array([row[i] for row in rows]) for i, key in enumerate(("variant", "line", "step", "value", "kind"))
    }
    x = alt.X("step:Q", title="step", axis=alt.Axis(format=",d", tickMinStep=1), scale=alt.Scale(nice=False))
    y = alt.Y(
        "value:Q", title="validation MAP@R", scale=alt.Scale(zero=False), axis=alt.Axis(format=".3~%", tickCount=6)
    )
    tooltip = [
        alt.Tooltip("variant:N"),
        alt.Tooltip("line:N", title="run"),
        alt.Tooltip("step:Q", format=",d"),
        alt.Tooltip("value:Q", title="MAP@R", format=".1%"),
    ]
    # Thin lines for seeds, thick lines for means, horizontal lines for baselines.
    lines = alt.Chart().encode(x, y, *_by_variant(names, ceiling), tooltip=tooltip)
    seeds = lines.transform_filter(alt.datum.kind == "seed").mark_line(strokeWidth=1, opacity=0.45)
    means = lines.transform_filter(alt.datum.kind == "mean")
    layers = [
        seeds.encode(alt.Detail("line:N")),
        means.mark_line(strokeWidth=3, point={"size": 34, "filled": True}),
        *baselines.layers_over_curves(against or {}, y),
    ]
    # Draw the best validation score of the reference variant as a horizontal line.
    level = ceiling_of(seed_curves, ceiling) if ceiling else None
    if level is not None:
        words = f"{ceiling}: best validation {100 * level:.1f} %"
        flat = alt.Chart(values({"value": level, "words": words})).encode(y)
        text = flat.mark_text(align="left", dx=6, dy=-7, color=ink("muted"), fontSize=12)
        layers += [
            flat.mark_rule(strokeDash=[6, 4], color=CEILING, size=2),
            text.encode(alt.XValue(0), alt.Text("words:N")),
        ]
    return specification(alt.layer(*layers, data=ROWS, height=300, autosize=FIT)), columns


def bars(
    results: Sequence[Bar],
    *,
    title: str = "test MAP@R",
    ceiling: str | None = None,
    against: Levels | None = None,
    top: Sequence[str] | None = None,
    over: str = "seeds",
) -> tuple[Spec, Columns]:
    """Return a chart with one bar per variant, best on top: the mean, and a line of ± one sample standard deviation.

    The standard deviation uses ddof=1. Scores of single seeds appear as dots.

    Args:
        results: Scores of each variant.
        title: Name of the score.
        ceiling: Variant drawn in grey, as a reference; None for no reference.
        against: Scores of the baselines, drawn across the bars.
        top: Variants in full colour, all others being faded; None to draw all in full colour.
        over: Plural noun for the repetitions of a variant, for the axis title.
    """
    # One row per variant, the best first.
    order = sorted((bar for bar in results if len(bar.values)), key=lambda bar: -float(np.mean(bar.values)))
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
    # Without padding between bars, baseline marks at equal scores form one continuous line.
    scale = alt.Scale(paddingInner=0, paddingOuter=0)
    step = max(LEAST_STEP, min(STEP, IN_SIGHT // max(1, len(names))))
    font = min(12, step - 2)
    axis_of_names = alt.Axis(labelLimit=200, labelFontSize=font, labelOverlap=False, labelFlush=False)
    y = alt.Y("variant:N", sort=names, title=None, axis=axis_of_names, scale=scale)
    # The axis title explains the bar and its error bar.
    seeds_of = f"{count.min()}" if len(set(count)) == 1 else f"{count.min()} to {count.max()}"
    noise = f"mean ± deviation of {seeds_of} {over}" if count.max() > 1 else "one seed each: noise unknown"
    tooltip = [
        alt.Tooltip("variant:N"),
        alt.Tooltip("mean:Q", format=".2%"),
        alt.Tooltip("label:N", title="mean ± deviation, %"),
        alt.Tooltip("seeds:Q"),
    ]
    # Draw the bars with their standard deviation, the single seeds on top, and the number in a column at the right,
    # where no line of a baseline crosses it.
    seeds = values(*({"variant": bar.variant, "value": float(value)} for bar in order for value in bar.values))
    levels = [value for level in (against or {}).values() for value in level.values()]
    most = float(max([*columns["end"], *levels], default=1.0))
    # no axis values above the largest one, because their grid lines would cross the numbers
    is_shown = f"datum.value <= {most}"
    axis = alt.Axis(
        format=".3~%",
        orient="top",
        tickCount=8,
        titleAnchor="end",
        gridOpacity={"condition": {"test": is_shown, "value": 1}, "value": 0},
        labelExpr=f"{is_shown} ? datum.label : ''",
    )
    is_ceiling = alt.FieldEqualPredicate(field="variant", equal=ceiling or "")
    base = alt.Chart().encode(y)
    spreads = base.transform_filter(alt.datum.seeds > 1).mark_rule(strokeWidth=2, color=SEEDS)
    layers = [
        base.mark_bar(height={"band": 0.68}).encode(
            alt.X("mean:Q", title=f"{title} · {noise}", axis=axis, scale=_room(most)),
            alt.Opacity("opacity:Q", scale=None, legend=None),
            color=alt.when(is_ceiling).then(alt.value(CEILING)).otherwise(alt.value(COLOURS[0])),
            tooltip=tooltip,
        ),
        spreads.encode(alt.X("low:Q"), alt.X2("high")),
        alt.Chart(seeds).mark_point(filled=True, size=22, color=SEEDS, opacity=0.9).encode(y, alt.X("value:Q")),
        base.mark_text(align="right", fontSize=font, color=ink("muted")).encode(
            alt.XValue("width"), alt.Text("label:N")
        ),
        *baselines.layers_over_bars(against or {}, y),
    ]
    return specification(alt.layer(*layers, data=ROWS, height=alt.Step(step), autosize=FIT, padding=PADDING)), columns


def _room(most: float) -> alt.Scale:
    """Return an x scale up to the largest value `most` that leaves room for the column of numbers at the right.

    Narrow windows have relatively more room.
    """
    room = f"(windowSize()[0] < {NARROW} ? 1.55 : windowSize()[0] < 1200 ? 1.2 : 1.12)"
    end = alt.ExprRef(f"{room} * {most}")
    return alt.Scale(domainMax=end, nice=False)


def _by_variant(names: Sequence[str], ceiling: str | None) -> tuple[alt.Color, alt.StrokeDash]:
    others = [name for name in names if name != ceiling]
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(others)} | {ceiling: CEILING}
    legend = alt.Legend(
        title=None,
        orient="top",
        symbolType="stroke",
        symbolSize=500,
        symbolStrokeWidth=3,
        symbolOpacity=1,
        labelLimit=300,
        columns=alt.ExprRef(f"windowSize()[0] < {NARROW} ? 1 : windowSize()[0] < 1200 ? 2 : 4"),
    )
    scale = alt.Scale(domain=list(names), range=[colours[name] for name in names])
    colour = alt.Color("variant:N", legend=legend, scale=scale)
    return colour, alt.StrokeDash("variant:N", legend=legend, scale=cycle(names, DASHES))
