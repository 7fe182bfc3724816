"""Charts of the distances within a test split: histograms, and the density of triplets over (d_ap, d_an)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from dmlcore.figures.confusions import GREY, MARKED, RIGHT, WRONG
from dmlcore.figures.curves import COLOURS, DASHES
from dmlcore.figures.vega_lite import ROWS, Columns, Spec, specification, square_legend, values
from dmlcore.typing import Floats, Ints

# names of the two boundaries of a loss: where it becomes active, and where the upper clamp m2 begins
BORDERS = ["raw = 0", "raw = m2"]


@dataclass(frozen=True)
class Histograms:
    """Distance histograms of one run.

    Attributes:
        run: Name of the run.
        edges: Edges of the bins, shape (B + 1,).
        positives: Counts of positive pairs, shape (B,).
        negatives: Counts of negative pairs, shape (B,).
    """

    run: str
    edges: Floats
    positives: Ints
    negatives: Ints


def distances(
    histograms: Sequence[Histograms], windows: Sequence[tuple[float, float]] = (), mean: float | None = None
) -> tuple[Spec, Columns]:
    """Return a chart of the distance densities of positive and negative pairs.

    The first run is drawn as bars, a second run as dashed steps over the bars. Each density has area 1, so that runs
    with different bin widths can be compared.

    Args:
        histograms: Histograms of one or two runs.
        windows: Distance intervals to shade.
        mean: Mean distance of the positive pairs from which the windows were derived, drawn as a vertical line; None
            for no line.
    """
    # One row per run, kind of pair (positive or negative) and bin.
    parts = [
        {
            "from": h.edges[:-1],
            "to": h.edges[1:],
            "share": (shares := counts / max(1, counts.sum())),
            "density": shares / np.diff(h.edges),
            "pairs": np.full(len(counts), kind, object),
            "run": np.full(len(counts), h.run, object),
            "number": np.full(len(counts), number),
        }
        for number, h in enumerate(histograms)
        for counts, kind in ((h.positives, "same class"), (h.negatives, "other classes"))
    ]
    columns: Columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    end = max(float(h.edges[-1]) for h in histograms)
    kinds = alt.Scale(domain=["same class", "other classes"], range=[RIGHT, WRONG])
    colour = alt.Color("pairs:N", scale=kinds, legend=alt.Legend(title=None, orient="top"))
    title, domain = "Euclidean distance", alt.Scale(domain=[0, end])
    y = alt.Y("density:Q", title="density of pairs", stack=None, axis=alt.Axis(tickCount=5))
    tooltip = [
        alt.Tooltip("pairs:N"),
        alt.Tooltip("from:Q", format=".3~f"),
        alt.Tooltip("to:Q", format=".3~f"),
        alt.Tooltip("share:Q", format=".2%"),
        *([alt.Tooltip("run:N")] if len(histograms) > 1 else []),
    ]
    # Windows at the back, the first run as bars, the second as steps over the bars.
    shaded = alt.Chart(values(*({"a": a, "b": b} for a, b in windows))).mark_rect(opacity=0.14, color=MARKED)
    base = alt.Chart().encode(y, colour, tooltip=tooltip)
    bars = base.transform_filter(alt.datum.number == 0).mark_bar(opacity=0.55, binSpacing=0)
    steps = base.transform_filter(alt.datum.number == 1)
    steps = steps.mark_line(interpolate="step-after", strokeWidth=2, strokeDash=DASHES[1])
    layers = [
        shaded.encode(alt.X("a:Q"), alt.X2("b")),
        bars.encode(alt.X("from:Q", title=title, scale=domain, bin=alt.BinParams(binned=True)), alt.X2("to")),
        steps.encode(alt.X("from:Q", title=title, scale=domain)),
    ]
    if mean is not None:
        line = alt.Chart(values({"a": mean})).mark_rule(color=RIGHT, strokeDash=DASHES[2], size=2)
        layers.append(line.encode(alt.X("a:Q")))
    return specification(alt.layer(*layers, data=ROWS, height=300)), columns


def portrait(
    d_ap: Floats,
    d_an: Floats,
    reach: float,
    lines: tuple[Sequence[Floats], Sequence[Floats]] = ((), ()),
    *,
    bins: int = 60,
    height: int = 420,
    title: str | None = None,
) -> tuple[Spec, Columns]:
    """Return a heat map of the number of triplets over d_ap (x) and d_an (y), with logarithmic opacity.

    The dotted diagonal is d_an = d_ap; in triplets below it the negative is nearer than the positive.

    Args:
        d_ap: Distances between anchor and positive, shape (t,).
        d_an: Distances between anchor and negative, shape (t,).
        reach: Upper end of both axes, which start at 0.
        lines: Two lists of polylines (K, 2): those along which raw, the loss before the clamp, is 0 (drawn solid), and
            those along which it reaches the upper clamp m2 (dashed).
        bins: Number of bins along each axis.
        height: Height in pixels; below 300, axis titles and legends are omitted.
        title: Heading of the chart, if any.
    """
    # Bins that hold triplets.
    counts, edges, _ = np.histogram2d(d_ap, d_an, bins=bins, range=[[0, reach], [0, reach]])
    across, up = np.nonzero(counts)
    n = counts[across, up]
    columns: Columns = {
        "ap": edges[across].round(6),
        "ap_to": edges[across + 1].round(6),
        "an": edges[up].round(6),
        "an_to": edges[up + 1].round(6),
        "triplets": n.astype(np.int64),
    }
    small = height < 300
    axis = alt.Axis(tickCount=3 if small else 6, grid=False)
    scale = alt.Scale(domain=[0, reach], nice=False)
    x = alt.X("ap:Q", title=None if small else "d(a, p), to the positive", scale=scale, axis=axis)
    y = alt.Y("an:Q", title=None if small else "d(a, n), to the negative", scale=scale, axis=axis)
    density = square_legend("triplets", COLOURS[0], ",d")
    loss = alt.Legend(title="loss", orient="bottom", symbolStrokeColor=WRONG, symbolStrokeWidth=2)
    opacity = alt.Scale(type="log", domain=[1, max(2, int(n.max(initial=1)))], range=[0.3, 1])
    dashes = alt.Scale(domain=BORDERS, range=DASHES[:2])
    drawn = _drawn(lines)
    # Density at the back, the diagonal over it, the boundaries of the loss on top.
    cells = (
        alt.Chart()
        .mark_rect(color=COLOURS[0])
        .encode(
            x,
            y,
            alt.Opacity("triplets:Q", scale=opacity, legend=None if small else density),
            alt.X2("ap_to"),
            alt.Y2("an_to"),
            tooltip=[
                alt.Tooltip("ap:Q", format=".3~f", title="d(a, p) from"),
                alt.Tooltip("an:Q", format=".3~f", title="d(a, n) from"),
                alt.Tooltip("triplets:Q", format=",d"),
            ],
        )
    )
    diagonal = alt.Chart(values({"ap": 0, "an": 0}, {"ap": reach, "an": reach}))
    diagonal = diagonal.mark_line(color=GREY, strokeDash=DASHES[2], strokeWidth=1.5).encode(x, y)
    borders = alt.Chart(values(*drawn)).mark_line(color=WRONG, strokeWidth=2, clip=True)
    borders = borders.encode(
        x,
        y,
        alt.StrokeDash("kind:N", scale=dashes, legend=None if small else loss),
        alt.Order("order:Q"),
        alt.Detail("line:N"),
    )
    chart = alt.layer(*[cells, diagonal, borders][: 3 if drawn else 2], data=ROWS, height=height)
    if title:
        chart.title = alt.Title(title, fontSize=12, anchor="start")
    return specification(chart), columns


def _drawn(lines: tuple[Sequence[Floats], Sequence[Floats]]) -> list[dict[str, Any]]:
    """Return one row per point of the polylines of both boundaries, with line index and position along the line."""
    return [
        {"line": number, "order": place, "ap": float(point[0]), "an": float(point[1]), "kind": kind}
        for kind, group in zip(BORDERS, lines, strict=True)
        for number, line in enumerate(group)
        for place, point in enumerate(line)
    ]
