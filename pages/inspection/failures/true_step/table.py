"""Table of the true steps. Its columns are numeric, so that they sort as numbers; the best values are highlighted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from dmlcore import losses
from dmlcore.inspection.failure.one_step import NeighbourRanks

BEST = "background-color: rgba(0, 158, 115, 0.22); font-weight: bold"


@dataclass(frozen=True)
class StepColumn:
    """Table column: title, tooltip, number format, and `better` (1 if larger values are better, else -1)."""

    title: str
    help: str
    text: str
    better: int
    scale: float = 1.0


COLUMNS = {
    "free": StepColumn("Right P, free step", "rank if only the three embeddings move; lower is better", "{:,.0f}", -1),
    "right": StepColumn("Right P, true step", "rank; lower is better", "{:,.0f}", -1),
    "wrong": StepColumn("Wrong N, true step", "rank; higher is better", "{:,.0f}", 1),
    "ap": StepColumn("AP@R of the query, %", "higher is better", "{:.2f}", 1, 100),
    "map_at_r": StepColumn(
        "MAP@R of all queries, %", "effect on all other queries; higher is better", "{:.2f}", 1, 100
    ),
}


def of_steps(
    before: Mapping[str, Any], after: Mapping[str, Mapping[str, Any]], free: Mapping[str, NeighbourRanks]
) -> Styler:
    """Return a table of the ranks after one step, one row per loss.

    Args:
        before: The ranks before the step, from `true_step.read`.
        after: The ranks after the true step of each loss.
        free: The ranks after a step of each loss that moves only the three embeddings.
    """
    now = numbers({**before, "free": before["right"]})
    rows = {name: numbers({**each, "free": free[name].right}) for name, each in after.items()}
    frame = pd.DataFrame(
        [
            {"loss": losses.formula(name).title, "settings": settings(name, after[name])} | row
            for name, row in rows.items()
        ]
    )
    styler = frame.style
    for key, column in COLUMNS.items():
        styler = styler.format(lambda value, key=key: change(COLUMNS[key], now[key], value), subset=[key])
        styler = styler.apply(
            lambda values, key=key, column=column: best(values, now[key], column.better), subset=[key]
        )
    return styler


def numbers(standing: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the value in each column, scaled for display, from the ranks and scores that `true_step.read` returns."""
    return {key: None if standing[key] is None else column.scale * standing[key] for key, column in COLUMNS.items()}


def settings(name: str, after: Mapping[str, Any]) -> str:
    """Return the non-default parameters of a loss as text, with a note if it has no force on the triplet."""
    given = {k: v for k, v in after["hyper"].items() if v is not None and v != losses.formula(name).defaults.get(k)}
    text = ", ".join(f"{k} = {v}" for k, v in given.items()) or "defaults"
    return text if after["active"] else f"{text}; no force"


def change(column: StepColumn, before: float | None, after: float | None) -> str:
    """Return the value after a step as text; if the displayed value changes, the value before the step precedes it."""
    then, first = (column.text.format(each) if each is not None else "–" for each in (after, before))
    return then if then == first else f"{first} → {then}"


def best(values: pd.Series[float], now: float | None, better: int) -> list[str]:
    """Return the CSS of each cell: BEST for the best values of a column; all "" if none beats `now` or all tie."""
    lead = (better * values).max()
    if now is None or not lead > better * now or (better * values == lead).all():
        return [""] * len(values)
    return [BEST if better * value == lead else "" for value in values]
