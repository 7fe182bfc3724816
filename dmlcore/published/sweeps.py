"""Published scores over a hyper-parameter, mostly the margin, for losses that Karaman 2021 ran with several values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from dmlcore.published import karaman
from dmlcore.published.collection import loss_title

FEWEST = 3  # minimum number of values in a sweep
AXES = ("m", "m1", "rho")
AXIS_TITLES = {"m": "margin m", "m1": "lower margin m1", "rho": "ρ"}


@dataclass(frozen=True)
class SweepSeries:
    """Rows that differ only in the swept hyper-parameter; `fixed` states the other hyper-parameters as text."""

    fixed: str
    hyper: Mapping[str, float]  # the other hyper-parameters
    # in ascending order of the swept value; a setting that was run twice occurs twice
    rows: tuple[karaman.LossRow, ...]


@dataclass(frozen=True)
class Sweep:
    """Scores of a loss over one hyper-parameter on one data set."""

    loss: str
    dataset: str
    axis: str
    series: tuple[SweepSeries, ...]

    @property
    def key(self) -> str:
        """Identifier as used in URLs."""
        return f"{self.dataset.partition('-')[0].lower()}-{self.loss.replace('_', '-')}-{self.axis}"

    @property
    def title(self) -> str:
        """Title, for example "Ranking over margin m, CUB-200-2011"."""
        return f"{loss_title(self.loss)} over {AXIS_TITLES[self.axis]}, {self.dataset}"

    @property
    def tables(self) -> list[str]:
        """Numbers of the published tables that contain the rows of the sweep."""
        numbers = {row.table for series in self.series for row in series.rows}
        return sorted(numbers, key=lambda number: int(number.split(".")[1]))

    def best(self, column: str) -> float:
        """Return the highest score of all series in a column."""
        return max(row.scores[column] for series in self.series for row in series.rows)


@cache
def sweeps() -> tuple[Sweep, ...]:
    """Return all sweeps with at least three values, margins first."""
    all_sweeps = []
    for axis in AXES:
        for dataset in reversed(karaman.DATASETS):
            for loss in dict.fromkeys(row.loss for row in karaman.rows()):
                series = tuple(_series(loss, dataset, axis))
                if series:
                    all_sweeps.append(Sweep(loss, dataset, axis, series))
    return tuple(all_sweeps)


def _series(loss: str, dataset: str, axis: str) -> list[SweepSeries]:
    groups: dict[tuple[object, ...], list[karaman.LossRow]] = {}
    for row in karaman.rows():
        if row.loss == loss and row.dataset == dataset and not row.quoted_from and axis in row.hyper:
            others = tuple((k, v) for k, v in row.hyper.items() if k != axis)
            groups.setdefault((*others, row.unhinged), []).append(row)
    kept = [rows for rows in groups.values() if len({row.hyper[axis] for row in rows}) >= FEWEST]
    varying = {
        k for rows in kept for k in rows[0].hyper if k != axis and len({rows_[0].hyper.get(k) for rows_ in kept}) > 1
    }
    hinges = {rows[0].unhinged for rows in kept}
    all_series = []
    for rows in kept:
        words = [f"{'ρ' if k == 'rho' else k} = {_plain(rows[0].hyper[k])}" for k in rows[0].hyper if k in varying]
        if len(hinges) > 1:
            words.append("without clamp" if rows[0].unhinged else "with clamp")
        hyper = {k: v for k, v in rows[0].hyper.items() if k != axis}
        ordered = tuple(sorted(rows, key=lambda row: row.hyper[axis]))
        all_series.append(SweepSeries(", ".join(words) or "printed", hyper, ordered))
    return sorted(all_series, key=lambda series: [*series.hyper.values()])


def _plain(value: float) -> str:
    return "12/7" if abs(value - 12 / 7) < 1e-9 else f"{value:g}"
