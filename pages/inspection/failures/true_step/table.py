"""The table of the true steps: every column holds numbers, so that it sorts as numbers; the best of each is marked."""

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
    """A column: its title, help, how a number is written, and 1 where larger is better, -1 where smaller."""

    title: str
    help: str
    text: str
    better: int
    scale: float = 1.0


COLUMNS = {
    "free": StepColumn("Right P, free step", "rank after the step of the three embeddings alone", "{:,.0f}", -1),
    "right": StepColumn("Right P, true step", "its rank; lower is better", "{:,.0f}", -1),
    "wrong": StepColumn("Wrong N, true step", "its rank; higher is better", "{:,.0f}", 1),
    "ap": StepColumn("AP@R of the query, %", "higher is better", "{:.2f}", 1, 100),
    "map_at_r": StepColumn("MAP@R of all queries, %", "what the step does to everything else", "{:.2f}", 1, 100),
}


def of_steps(
    before: Mapping[str, Any], after: Mapping[str, Mapping[str, Any]], free: Mapping[str, NeighbourRanks]
) -> Styler:
    """A row a loss. before, after: of `true_step.read`; free: where the step of the three embeddings alone leads."""
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
    """A standing as the columns hold it."""
    return {key: None if standing[key] is None else column.scale * standing[key] for key, column in COLUMNS.items()}


def settings(name: str, after: Mapping[str, Any]) -> str:
    """What of a loss is not its default, and whether it has a force."""
    given = {k: v for k, v in after["hyper"].items() if v is not None and v != losses.formula(name).defaults.get(k)}
    text = ", ".join(f"{k} = {v}" for k, v in given.items()) or "defaults"
    return text if after["active"] else f"{text}; no force"


def change(column: StepColumn, before: float | None, after: float | None) -> str:
    """A number with the one before it, where these differ as they are written."""
    then, first = (column.text.format(each) if each is not None else "–" for each in (after, before))
    return then if then == first else f"{first} → {then}"


def best(values: pd.Series[float], now: float | None, better: int) -> list[str]:
    """Styles that mark the best of a column: nothing where it is no better than before, or all have it."""
    lead = (better * values).max()
    if now is None or not lead > better * now or (better * values == lead).all():
        return [""] * len(values)
    return [BEST if better * value == lead else "" for value in values]
