"""Charts of confused classes, of scores by class and of hubs (samples that are neighbours of unusually many queries).

Class names are treated as data: they enter a chart only as values of columns and parameters, never inside a Vega
expression.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np

from dmlcore.figures.curves import COLOURS, DASHES
from dmlcore.figures.maps import luminance
from dmlcore.figures.palette import INK, mixed
from dmlcore.figures.vega_lite import ROWS, Columns, Spec, specification, square_legend, values
from dmlcore.geometry.scales import round_top
from dmlcore.typing import Array, Floats, Ints

RIGHT, WRONG, MARKED = (INK[False][role] for role in ("right", "wrong", "marked"))
# in pixels: side of the matrix including class names; minimum and maximum side of a cell
SIDE, LEAST_CELL, MOST_CELL = 600, 3, 44
MOST_NAMED = 40  # maximum number of classes with names next to the matrix; a cell is then at least 12 pixels wide
UPRIGHT = 18  # cell width in pixels below which column names are vertical, because slanted names would overflow
NUMBERED = 28  # cell width in pixels from which the share is written in the cell
LONGEST_NAME, LETTER = 130, 5.5  # in pixels: maximum width of a name next to the matrix; approximate width of a letter
FAINTEST = 0.04  # opacity of a cell of share 0
LEGIBLE = 4.5  # least contrast of a number to its cell (WCAG 2.2); black or white reach it on every colour
MOST_POINTS = 500  # maximum number of classes in the ranking; if there are more, evenly spaced ranks are shown
MOST_BARS = 50
GREY = INK[False]["quiet"]
TICKS = (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
CELL = "cell"  # name of the Vega-Lite selection of a matrix cell, with the fields i and j (class labels)


def matrix(
    shares: Floats, labels: Ints, names: Sequence[str], chosen: tuple[int, int] | None, *, dark: bool = False
) -> tuple[Spec, Columns]:
    """Return the confusion matrix as a Vega-Lite specification and its data rows.

    Diagonal cells are green, others are orange, and larger shares are more opaque. The opacity scale ends at the
    largest share off the diagonal. All cells are squares of one size. With more than MOST_NAMED classes, names appear
    only in tooltips.

    Args:
        shares: Share of the neighbours of queries of the row's class that belong to the column's class, shape (c, c).
        labels: Label of each row and column, shape (c,).
        names: Names of the classes, in the order of `labels`.
        chosen: Row and column label of the cell to frame; None for no frame.
        dark: True for the dark theme.
    """
    columns = _cells(shares, labels, names, chosen)
    ink = INK[dark]["text"]
    marked = ink if dark else MARKED  # on a dark page, blue hardly differs from the cells
    # The scale of opacity ends at the largest confusion; otherwise the diagonal would make all other cells pale.
    off = columns["share"][columns["i"] != columns["j"]]
    top = round_top(float(off.max(initial=0.0)), 1.0)
    # Show axis labels only if all classes can be named. An expression looks up the name of a label, so that cells are
    # keyed by label.
    named = len(labels) <= MOST_NAMED
    room = SIDE - (min(LONGEST_NAME, LETTER * max(map(len, names))) if named else 0)
    cell = int(np.clip(room // len(labels), LEAST_CELL, MOST_CELL))
    axis = alt.Axis(
        ticks=False,
        domain=False,
        labels=named,
        labelExpr="names[datum.value]",
        labelLimit=LONGEST_NAME,
        labelOverlap=False,
        labelFlush=False,
        labelFontSize=int(np.clip(cell - 1, 7, 11)),
        labelColor=ink,
        titleColor=ink,
    )
    across = axis.copy()
    level = LETTER * max(map(len, names)) < cell - 8
    across.labelAngle, across.orient = 0 if level else -60 if cell >= UPRIGHT else -90, "top"
    scale = alt.Scale(domain=labels.tolist(), paddingInner=0.04, paddingOuter=0)
    numbered = cell >= NUMBERED
    legend = square_legend(f"share of the neighbours{', numbers in per cent' if numbered else ''}", WRONG, ".2~%")
    legend.labelColor = legend.titleColor = ink
    opacity = alt.Scale(type="sqrt", domain=[0, top], range=[FAINTEST, 1], clamp=True)
    # Clickable cells.
    own = alt.datum.i == alt.datum.j
    rect = alt.Chart(name="cells").mark_rect(cursor="pointer")
    rect = rect.encode(
        alt.Opacity("share:Q", scale=opacity, legend=legend),
        color=alt.when(own).then(alt.value(RIGHT)).otherwise(alt.value(WRONG)),
        tooltip=[
            alt.Tooltip("query:N", title="queries of"),
            alt.Tooltip("neighbour:N", title="neighbours of"),
            alt.Tooltip("share:Q", title="share", format=".2~%"),
        ],
    ).add_params(
        alt.selection_point(name=CELL, fields=["i", "j"], on="click", toggle=False),
        alt.param("names", value={str(label): name for label, name in zip(labels.tolist(), names, strict=True)}),
    )
    # The frame is a layer of its own, because the opacity of a cell applies to its outline, too. Frame and numbers have
    # no tooltip, so that pointer events reach the cell below.
    frame = alt.Chart().mark_rect(filled=False, stroke=marked, strokeWidth=3).transform_filter(alt.datum.marked)
    # Write the share as a number if the cells are large enough.
    if numbered:
        columns["ink"] = _number_colours(columns, top, dark)
    number = alt.Chart().mark_text(fontSize=11).encode(alt.Text("percent:N"), color=alt.Color("ink:N", scale=None))
    chart = alt.layer(
        *[rect, frame, number][: 3 if numbered else 2],
        data=ROWS,
        width=alt.Step(cell),
        height=alt.Step(cell),
        autosize=alt.AutoSizeParams(type="pad"),
    )
    chart = chart.encode(
        alt.X("j:O", title="class of the neighbour", scale=scale, axis=across),
        alt.Y("i:O", title="class of the query", scale=scale, axis=axis),
    )
    return specification(chart), columns


def _cells(shares: Floats, labels: Ints, names: Sequence[str], chosen: tuple[int, int] | None) -> Columns:
    """Return one row per non-zero cell of the matrix, plus the `chosen` cell even if it is zero."""
    row, column = np.nonzero(shares)
    if chosen is not None and set(chosen) <= set(labels.tolist()):
        at = [int(np.flatnonzero(labels == label)[0]) for label in chosen]
        if not shares[at[0], at[1]]:
            row, column = np.append(row, at[0]), np.append(column, at[1])
    text, share = np.array(names, dtype=object), shares[row, column]
    return {
        "i": labels[row],
        "j": labels[column],
        "query": text[row],
        "neighbour": text[column],
        "share": share,
        "percent": np.array([f"{100 * s:.{0 if s >= 0.01 else 1}f}" for s in share], dtype=object),
        "marked": np.array([(labels[r], labels[c]) == chosen for r, c in zip(row, column, strict=True)], bool),
    }


def _number_colours(columns: Columns, top: float, dark: bool) -> Array:
    """Return the colour of the number in each cell: that of other text, or white or black where it is hard to read."""
    page, text = INK[dark]["page"], INK[dark]["text"]
    choices = {text: luminance(text), "white": 1.0, "black": 0.0}

    def legible(own: bool, share: float) -> str:
        opacity = FAINTEST + (1 - FAINTEST) * min(1.0, (share / top) ** 0.5)
        cell = luminance(mixed(RIGHT if own else WRONG, page, opacity))
        return next(name for name, light in choices.items() if _contrast(light, cell) >= LEGIBLE)

    cells = zip(columns["i"] == columns["j"], columns["share"].tolist(), strict=True)
    return np.array([legible(own, share) for own, share in cells], dtype=object)


def _contrast(a: float, b: float) -> float:
    """Return the contrast of two relative luminances, from 1 to 21 (WCAG 2.2)."""
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


def ranking(names: Sequence[str], map_at_r: Floats, recall_at_1: Floats, queries: Ints) -> tuple[Spec, Columns]:
    """Return a chart of MAP@R (discs) and R@1 (squares) by class; pass the classes in ascending order of MAP@R."""
    rank = np.unique(np.linspace(0, len(names) - 1, min(len(names), MOST_POINTS)).round().astype(int))
    text = np.array(names, dtype=object)[rank]
    columns: Columns = {
        "rank": np.tile(rank + 1, 2),
        "class": np.tile(text, 2),
        "score": np.concatenate([map_at_r[rank], recall_at_1[rank]]),
        "of": np.repeat(["MAP@R", "R@1"], len(rank)),
        "queries": np.tile(queries[rank], 2),
    }
    legend, domain = alt.Legend(title=None, orient="top"), ["MAP@R", "R@1"]
    mark = alt.Chart(ROWS, height=300).mark_point(filled=True, size=46 if len(rank) <= 120 else 16, opacity=0.85)
    chart = mark.encode(
        alt.X(
            "rank:Q",
            title="class, worst MAP@R first",
            axis=alt.Axis(tickMinStep=1, format=",d"),
            scale=alt.Scale(nice=False, domain=[0.5, len(names) + 0.5]),
        ),
        alt.Y("score:Q", title=None, axis=alt.Axis(format="%")),
        alt.Color("of:N", legend=legend, scale=alt.Scale(domain=domain, range=COLOURS[:2])),
        alt.Shape("of:N", legend=legend, scale=alt.Scale(domain=domain, range=["circle", "square"])),
        tooltip=[
            alt.Tooltip("class:N"),
            alt.Tooltip("of:N", title="score"),
            alt.Tooltip("score:Q", format=".1%", title="value"),
            alt.Tooltip("queries:Q", format=",d"),
        ],
    )
    return specification(chart), columns


def occurrences(counts: Ints, chance: Floats, threshold: float) -> tuple[Spec, Columns]:
    """Return a histogram of N_k, the number of queries that have a sample among their k neighbours, and chance.

    Counts are bars on a symmetric logarithmic scale, the numbers expected by chance are a dashed line, and a vertical
    line marks the hub threshold.

    Args:
        counts: Number of samples with N_k = 0..m-1, shape (m,).
        chance: Number of samples expected by chance, shape (m,).
        threshold: N_k from which a sample is a hub.
    """
    # If there are more values of N_k than MOST_BARS, each bar covers several consecutive values.
    width = -(-len(counts) // MOST_BARS)
    start = np.arange(0, len(counts), width)
    columns: Columns = {
        "from": start - 0.5,
        "to": start + width - 0.5,
        "samples": np.add.reduceat(counts, start),
        "chance": np.add.reduceat(chance, start),
        "N_k": np.array([f"{a}" if width == 1 else f"{a} to {a + width - 1}" for a in start], object),
    }
    columns["middle"] = (columns["from"] + columns["to"]) / 2
    count = alt.Axis(tickMinStep=1, format=",d")
    # Bars are as wide as the range of N_k that they cover, so that the line of chance passes through their centres.
    domain = alt.Scale(domain=[-0.5, float(columns["to"][-1])], nice=False)
    ticks = alt.Axis(values=[v for v in TICKS if v <= max(1, counts.max())], format=",d")
    title, symlog = "times a neighbour, N_k", alt.Scale(type="symlog")
    tooltip = [
        alt.Tooltip("N_k:N", title="times a neighbour"),
        alt.Tooltip("samples:Q", format=",d"),
        alt.Tooltip("chance:Q", format=",.1~f", title="by chance"),
    ]
    bars = alt.Chart().mark_bar(color=COLOURS[0], opacity=0.75, binSpacing=1)
    line = alt.Chart().mark_line(color=GREY, strokeDash=DASHES[1], strokeWidth=2)
    layers = [
        bars.encode(
            alt.X("from:Q", title=title, scale=domain, axis=count, bin=alt.BinParams(binned=True)),
            alt.X2("to"),
            alt.Y("samples:Q", title="samples", scale=symlog, axis=ticks),
            tooltip=tooltip,
        ),
        line.encode(
            alt.X("middle:Q", title=title, scale=domain, axis=count),
            alt.Y("chance:Q", title="samples", scale=symlog, axis=ticks),
        ),
        alt.Chart(values({"a": threshold})).mark_rule(color=WRONG, size=2).encode(alt.X("a:Q")),
    ]
    return specification(alt.layer(*layers, data=ROWS, height=280)), columns


def by_chance(samples: int, queries: int, k: int, most: int) -> Floats:
    """Return the number of samples expected at each N_k = 0..`most` if each query drew its k neighbours at random."""
    from scipy.stats import binom  # slow to import

    expected: Floats = samples * binom.pmf(np.arange(most + 1), queries, min(1.0, k / max(1, samples - 1)))
    return expected
