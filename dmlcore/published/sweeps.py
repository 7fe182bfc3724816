"""Scores over a hyper-parameter, for the losses that the 2021 thesis sweeps: above all over the margin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from dmlcore.published import karaman
from dmlcore.published.collection import loss_title

FEWEST = 3  # values of a sweep
AXES = ("m", "m1", "rho")
AXIS_TITLES = {"m": "margin m", "m1": "lower margin m1", "rho": "ρ"}


@dataclass(frozen=True)
class SweepSeries:
    """Rows that differ in the swept hyper-parameter alone; fixed: the others, in words."""

    fixed: str
    hyper: Mapping[str, float]  # the others
    rows: tuple[karaman.LossRow, ...]  # by the swept value; one that was repeated stands twice


@dataclass(frozen=True)
class Sweep:
    """A loss over one hyper-parameter on one data set."""

    loss: str
    dataset: str
    axis: str
    series: tuple[SweepSeries, ...]

    @property
    def key(self) -> str:
        """For links."""
        return f"{self.dataset.partition('-')[0].lower()}-{self.loss.replace('_', '-')}-{self.axis}"

    @property
    def title(self) -> str:
        """For example "Ranking over margin m, CUB-200-2011"."""
        return f"{loss_title(self.loss)} over {AXIS_TITLES[self.axis]}, {self.dataset}"

    @property
    def tables(self) -> list[str]:
        """Numbers of the tables that its rows are from."""
        numbers = {row.table for series in self.series for row in series.rows}
        return sorted(numbers, key=lambda number: int(number.split(".")[1]))

    def best(self, column: str) -> float:
        """The highest score."""
        return max(row.scores[column] for series in self.series for row in series.rows)


@cache
def sweeps() -> tuple[Sweep, ...]:
    """All sweeps of three values at least, margins first."""
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
