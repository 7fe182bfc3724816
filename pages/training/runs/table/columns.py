"""Headings and formats of the columns in the tables of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from dmlcore.figures.curves import COLOURS
from pages.training.runs.table import rows

Table = dict[str, list[Any]]
CURVE = "curve"  # key of the column that shows the colour of each run's curve
POINTS, NOISE, DIFFERS = "against the baseline", "over the seeds", "different settings"
HEADINGS = {"steps": "progress", "inputs": "MAP@R raw", "untrained": "before", "trained": "after"}


def heading(name: str) -> str:
    """Return the heading of the column `name` as shown in the table."""
    return HEADINGS.get(name) or rows.title(name)


def configured(table: Table) -> dict[str, Any]:
    """Return the Streamlit configuration of each column by its name."""
    percent: Callable[..., Any] = st.column_config.NumberColumn
    shape = {
        "status": st.column_config.TextColumn(width=90),
        "run": st.column_config.TextColumn(pinned=True),
        CURVE: st.column_config.MultiselectColumn(
            options=[str(k + 1) for k in range(len(COLOURS))],
            color=COLOURS,
            width=60,
            help="colours of the curves below",
        ),
        "steps": st.column_config.ProgressColumn("progress", min_value=0, max_value=100, format="%d %%", width=90),
        "inputs": percent("MAP@R raw", format="%.1f %%", help="test split, raw inputs"),
        "untrained": percent("before", format="%.1f %%", help="test MAP@R before training"),
        "features": percent("frozen", format="%.1f %%", help="test MAP@R of frozen features, without training"),
        "whitened": percent("whitened", format="%.1f %%", help="test MAP@R of whitened features, without training"),
        rows.title("validation"): percent(format="%.1f %%", help="best MAP@R on the validation split"),
        "trained": percent("after", format="%.1f %%", help="test MAP@R, trained"),
        "started": st.column_config.DatetimeColumn(format="distance"),
        POINTS: percent(format="%+.1f", help="test MAP@R of this run minus that of the baseline, in points"),
        NOISE: st.column_config.TextColumn(help="mean ± deviation of this difference over all seeds of these settings"),
        DIFFERS: st.column_config.TextColumn(width="large"),
        "seconds": percent(format="%.0f s", help="time spent training"),
        "note": st.column_config.TextColumn(width="medium"),
    }
    scores = {name for name in table if name in rows.FURTHER.values() or name.startswith("R@")}
    shape |= {name: percent(format="%.1f %%", help="test split, trained") for name in scores}
    floats = {name for name, column in table.items() if name not in shape and any(isinstance(v, float) for v in column)}
    return shape | {name: percent(format="%.4g") for name in floats}
