"""Charts of retrieval differences: each query under models A and B, and queries gained or lost during training."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np

from dmlcore.figures.palette import INK
from dmlcore.figures.vega_lite import FIT, ROWS, Columns, Spec, specification, values
from dmlcore.typing import Bools, Floats, Ints

RIGHT, WRONG, QUIET = (INK[False][role] for role in ("right", "wrong", "quiet"))
KINDS = ("stayed right", "right in B only", "right in A only", "stayed wrong")
MOST_POINTS = 3000  # with more queries than this, draw counts on a grid instead of points
CELLS = 25
PICKED = "picked"  # name of the Vega-Lite selection of the scatter plot, with the field `sample`


def scatter(before: Floats, after: Floats, right: Bools, samples: Ints) -> tuple[Spec, Columns]:
    """Return a scatter plot of each query's AP@R under model A (x) and model B (y), with the diagonal.

    More than MOST_POINTS queries are binned into cells.

    Args:
        before: AP@R under A, in 0..1, shape (n,).
        after: AP@R under B, in 0..1, shape (n,).
        right: Boolean mask (2, n) for A and B, True where the nearest neighbour has the query's class.
        samples: Index of each query's sample in the data set, shape (n,).
    """
    scale = alt.Scale(domain=[-0.03, 1.03], nice=False)
    axis = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1], grid=True)
    x = alt.X("x:Q", title="AP@R in A", scale=scale, axis=axis)
    y = alt.Y("y:Q", title="AP@R in B", scale=scale, axis=axis)
    diagonal = alt.Chart(values({"x": 0, "y": 0}, {"x": 1, "y": 1}))
    diagonal = diagonal.mark_line(color=QUIET, strokeDash=[4, 4], strokeWidth=1)
    layer, columns = _points(before, after, right, samples) if len(before) <= MOST_POINTS else _cells(before, after)
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    chart = alt.layer(diagonal.encode(x, y), layer.encode(x, y), data=ROWS, height=350, autosize=fit)
    return specification(chart), columns


def _points(before: Floats, after: Floats, right: Bools, samples: Ints) -> tuple[alt.Chart, Columns]:
    kind = np.select([right[0] & right[1], right[1], right[0]], [0, 1, 2], 3)
    order = np.argsort(np.isin(kind, (1, 2)), kind="stable")  # draw queries that changed between A and B on top
    columns: Columns = {"x": before, "y": after, "sample": samples, "kind": np.array(KINDS, dtype=object)[kind]}
    colours = alt.Scale(domain=KINDS, range=[QUIET, RIGHT, WRONG, QUIET])
    shapes = alt.Scale(domain=KINDS, range=["circle", "triangle-up", "square", "cross"])
    legend = alt.Legend(title=None, orient="bottom", columns=2, symbolOpacity=1, offset=4, columnPadding=12)
    picked = alt.selection_point(name=PICKED, fields=["sample"])
    mark = alt.Chart(name="queries").mark_point(filled=True, size=46, strokeWidth=1.2, cursor="pointer")
    layer = mark.encode(
        alt.Color("kind:N", scale=colours, legend=legend),
        alt.Shape("kind:N", scale=shapes, legend=legend),
        opacity=alt.when(picked).then(alt.value(0.7)).otherwise(alt.value(0.12)),
        tooltip=[
            alt.Tooltip("sample:N"),
            alt.Tooltip("x:Q", title="AP@R in A", format=".1%"),
            alt.Tooltip("y:Q", title="AP@R in B", format=".1%"),
            alt.Tooltip("kind:N", title="nearest neighbour"),
        ],
    )
    return layer.add_params(picked), {name: column[order] for name, column in columns.items()}


def _cells(before: Floats, after: Floats) -> tuple[alt.Chart, Columns]:
    counts, _, _ = np.histogram2d(before, after, CELLS, ((0, 1), (0, 1)))
    column, row = np.nonzero(counts)
    side = 1 / CELLS
    columns: Columns = {
        "x": column * side,
        "x2": (column + 1) * side,
        "y": row * side,
        "y2": (row + 1) * side,
        "queries": counts[column, row].astype(np.int64),
        "side": np.where(row > column, "B is better", np.where(row < column, "A is better", "about equal")),
    }
    colours = alt.Scale(domain=["B is better", "A is better", "about equal"], range=[RIGHT, WRONG, QUIET])
    layer = alt.Chart().mark_rect()
    layer = layer.encode(
        alt.Color("side:N", scale=colours, legend=alt.Legend(title=None, orient="bottom")),
        alt.Opacity("queries:Q", scale=alt.Scale(type="log", range=[0.15, 1]), legend=None),
        alt.X2("x2"),
        alt.Y2("y2"),
        tooltip=[alt.Tooltip("queries:Q", format=","), alt.Tooltip("side:N", title="cell")],
    )
    return layer, columns


def turnover(steps: Sequence[int], right: Floats, gained: Ints, lost: Ints) -> tuple[Spec, Columns]:
    """Return a chart of queries gained (up) and lost (down) between consecutive snapshots, below the curve of R@1.

    Args:
        steps: Training steps of the snapshots, ascending, length S.
        right: R@1 at each snapshot, in 0..1, shape (S,).
        gained: Number of queries that became correct in each interval between snapshots, shape (S - 1,).
        lost: Number of queries that became incorrect in each interval, shape (S - 1,).
    """
    begin, end = np.array(steps[:-1]), np.array(steps[1:])
    between = len(begin)
    columns: Columns = {
        "panel": np.array([*["flips"] * (2 * between), *["right"] * len(steps)], dtype=object),
        "from": np.concatenate([begin, begin, steps]),
        "to": np.concatenate([end, end, steps]),
        "value": np.concatenate([gained, -lost, right]).astype(float),
        "queries": np.concatenate([gained, lost, np.zeros(len(steps), np.int64)]),
        "what": np.array([*["gained"] * between, *["lost"] * between, *["right"] * len(steps)], dtype=object),
    }
    # Above: R@1, on the same x scale as the bars below.
    scale = alt.Scale(domain=[int(steps[0]), int(steps[-1])], nice=False)
    pad = 0.08 * (float(np.ptp(right)) or 0.1)
    domain = [float(right.min()) - pad, min(1.0, float(right.max()) + pad)]
    share = alt.Chart(width="container", height=96).transform_filter(alt.datum.panel == "right")
    share = share.mark_line(color=INK[False]["series"], point={"filled": True, "size": 40}).encode(
        alt.X("from:Q", scale=scale, axis=alt.Axis(labels=False, title=None)),
        alt.Y(
            "value:Q",
            title="R@1",
            # no fixed precision, so that labels have as many digits as the ticks need
            axis=alt.Axis(format="%", tickCount=4),
            scale=alt.Scale(domain=domain, nice=False),
        ),
        tooltip=[alt.Tooltip("from:Q", title="step", format=","), alt.Tooltip("value:Q", title="R@1", format=".1%")],
    )
    # Below: queries gained and lost between two snapshots; a bar is as wide as the interval between their steps.
    colours = alt.Scale(domain=["gained", "lost"], range=[RIGHT, WRONG])
    flips = alt.Chart(width="container", height=140).transform_filter(alt.datum.panel == "flips")
    flips = flips.mark_rect(xOffset=0.5, x2Offset=-0.5).encode(
        alt.X("from:Q", title="step", scale=scale, axis=alt.Axis(format="~s", tickCount=8, tickMinStep=1)),
        alt.X2("to"),
        alt.Y("value:Q", title="gained, lost", stack=None, axis=alt.Axis(format="~s", tickCount=5, tickMinStep=1)),
        alt.Y2Datum(0),
        alt.Color("what:N", scale=colours, legend=alt.Legend(title=None, orient="bottom")),
        tooltip=[
            alt.Tooltip("what:N", title="queries"),
            alt.Tooltip("queries:Q", title="number", format=","),
            alt.Tooltip("from:Q", title="from step", format=","),
            alt.Tooltip("to:Q", title="to step", format=","),
        ],
    )
    return specification(alt.vconcat(share, flips, data=ROWS, spacing=6, autosize=FIT)), columns
