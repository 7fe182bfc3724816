"""Margins view: published scores over the margin and other swept hyper-parameters, together with our results."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from dmlcore import losses
from dmlcore.figures import published as figures
from dmlcore.figures.published import Point
from dmlcore.published import collection, karaman, noise
from dmlcore.published.reference import hyper_text
from dmlcore.published.sweeps import AXIS_TITLES, Sweep, SweepSeries, sweeps
from pages.library.published_results import service as published_service
from pages.shared.widgets.chart import chart
from pages.shared.widgets.linked_box import csv_button, linked

SHIFT = "m - ρ/2"
PARAMETER = "sweep"  # URL parameter


def show() -> None:
    """Show the controls, chart and table of one hyper-parameter sweep."""
    known = {sweep.key: sweep for sweep in sweeps()}
    first = ["cub-ranking-m", *(key for key in known if key != "cub-ranking-m")]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = linked("Loss and hyper-parameter", first, PARAMETER, lambda key: known[key].title, 520)
        column = st.selectbox(
            "Score", karaman.COLUMNS, key="score", bind="query-params", width=130, help="In percent, as printed"
        )
        sweep = known[key]
        shifted = (
            sweep.loss == "moving"
            and sweep.axis == "m"
            and st.toggle(
                f"Over {SHIFT}",
                key="shifted",
                bind="query-params",
                help="On the sphere the regulariser of this loss equals ρ/2 at the boundary, which shifts the margin",
            )
        )
    draw(sweep, column, shifted)


def draw(sweep: Sweep, column: str, shifted: bool = False) -> None:
    """Draw the chart of a sweep, its caption, and a table of the plotted rows.

    `column` is the score to plot; `shifted` plots it over m - ρ/2 instead of m.
    """
    published = collection.table(f"K-{sweep.tables[0]}")
    assert published is not None
    band = noise.band(published).get(column, 0.0)
    printed = [
        Point(series.fixed, _x(sweep, row.hyper, shifted), row.scores[column], f"Table {row.table}: {hyper_text(row)}")
        for series in sweep.series
        for row in series.rows
    ]
    with st.spinner("Counting the training samples …"):
        ours = _ours(sweep, column, shifted)
    title = SHIFT if shifted else AXIS_TITLES[sweep.axis]
    split = "training split" if published.split == "train" else "test split"
    drawn = figures.sweep(printed, ours, x_title=title, y_title=f"{column}, {split}, %", band=band)
    best = max(printed, key=lambda point: point.score)
    words = f"{column} of {sweep.title}. Best printed: {best.score:.2f} at {title} = {best.x:g}"
    chart(f"sweep {sweep.key} {column} {shifted}", drawn, words)
    st.caption(_words(sweep, column, band, printed, ours))
    st.markdown(f":material/blur_on: **Noise.** {noise.words(published)}", help=noise.WHY if band else None)
    records = [
        {
            "table": row.table,
            **({"series": series.fixed} if len(sweep.series) > 1 else {}),
            **({SHIFT: round(_x(sweep, row.hyper, True), 6)} if shifted else {}),
            sweep.axis: row.hyper[sweep.axis],
            **row.scores,
        }
        for series in sweep.series
        for row in series.rows
    ]
    with st.expander(f"The {len(records)} rows", icon=":material/table_rows:"):
        st.dataframe(records, hide_index=True, key=f"rows {sweep.key}")
    csv_button("Download rows (CSV)", lambda: records, sweep.key, f"csv {sweep.key}")


def _x(sweep: Sweep, hyper: dict[str, float], shifted: bool) -> float:
    return hyper["m"] - hyper["rho"] / 2 if shifted else hyper[sweep.axis]


def _words(sweep: Sweep, column: str, band: float, printed: Sequence[Point], ours: Sequence[Point]) -> str:
    from_tables = f"Lines: Karaman 2021, Table{'s' if len(sweep.tables) > 1 else ''} {', '.join(sweep.tables)}."
    top = max(point.score for point in printed)
    equal = sorted({point.x for point in printed if point.score >= top - band - 1e-9})
    values = ", ".join(f"{x:g}" for x in equal)
    alone = f"only {values}" if len(equal) == 1 else f"no difference between {values} beyond the noise"
    within = f" Grey: within {band:g} {column} of the best ({alone})." if band else ""
    mine = " Crosses: our results; bars show one standard deviation." if ours else ""
    none = "" if ours else " We have no result yet: no run under this protocol and no study that repeats the table."
    return from_tables + within + mine + none


def _ours(sweep: Sweep, column: str, shifted: bool) -> list[Point]:
    """Return chart points for our results that use the data and the loss of the sweep.

    Each point is assigned to the published series with equal fixed hyper-parameters, if there is one.
    """
    rows = []
    for number in sweep.tables:
        table = collection.table(f"K-{number}")
        assert table is not None
        for ours in published_service.our_results(table):
            if ours.spec.loss.name != sweep.loss or column not in ours.scores:
                continue
            hyper = {
                k: float(v)
                for k, v in losses.describe(sweep.loss).resolve(ours.spec.loss.parameters).items()
                if isinstance(v, (int, float)) and math.isfinite(v)
            }
            if sweep.axis not in hyper:
                continue
            mean, deviation = ours.scores[column]
            words = f"{ours.what}, {published_service.setting(ours)}"
            if ours.deviations:
                words += f"; deviates from the protocol in {len(ours.deviations)} settings"
            low, high = (None, None) if deviation is None else (mean - deviation, mean + deviation)
            point = Point(_series_of(sweep.series, hyper), _x(sweep, hyper, shifted), mean, words, low, high)
            if point not in rows:
                rows.append(point)
    return rows


def _series_of(series: Sequence[SweepSeries], hyper: dict[str, float]) -> str:
    return next((f"ours, {s.fixed}" for s in series if all(hyper.get(k) == v for k, v in s.hyper.items())), "ours")
