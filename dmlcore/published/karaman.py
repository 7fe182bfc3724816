"""Result tables 4.1 to 4.14 of Karaman 2021: 180 rows as printed, each assigned to a loss of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from dmlcore.published import table_reader

COLUMNS = ("R@1", "R@2", "R@4", "R@8", "P@2", "P@4", "P@8", "P@R", "MAP@R")

DATASETS = ("CUB-200-2011", "toy")

NOISE = (
    "Differences up to about 0.9 R@1 or 0.2 MAP@R mean nothing: repeated and equivalent settings differ that much. "
    "Hyper-parameters were chosen on the test scores, so the best rows are optimistic."
)


@dataclass(frozen=True)
class LossRow:
    """One row of a result table of Karaman 2021.

    Attributes:
        table: Number of the table.
        dataset: Name of the data set.
        loss: Name of the loss in the catalogue.
        hyper: Hyper-parameters as printed.
        scores: The nine scores in per cent, by column.
        label: Name of the method as printed, if the row states one.
        quoted_from: Number of the table from which an overview (4.13, 4.14) repeats the row, else "".
        unhinged: True if the run used no clamp.
    """

    table: str
    dataset: str
    loss: str
    hyper: dict[str, float]
    scores: dict[str, float]
    label: str = ""
    quoted_from: str = ""
    unhinged: bool = False


@cache
def rows() -> tuple[LossRow, ...]:
    """Return all rows, in the order of the thesis."""
    files = table_reader.files("K")
    return tuple(
        LossRow(
            number,
            files[number].dataset,
            row.loss,
            row.numbers,
            dict(zip(COLUMNS, map(float, row.values), strict=True)),
            row.method,
            row.quoted_from,
            row.unhinged,
        )
        for number in sorted(files, key=lambda number: int(number.split(".")[1]))
        for row in files[number].rows
    )


def of_loss(name: str, dataset: str = "CUB-200-2011") -> list[LossRow]:
    """Return the rows of a loss on a data set; rows that repeat others are returned only if there are no others."""
    matching = [row for row in rows() if row.loss == name and row.dataset == dataset]
    return [row for row in matching if not row.quoted_from] or matching


def tried(name: str) -> dict[str, tuple[float, ...]]:
    """Return every value of each hyper-parameter that the tables report for a loss, ascending."""
    rows_of_loss = [row for dataset in DATASETS for row in of_loss(name, dataset)]
    keys = dict.fromkeys(k for row in rows_of_loss for k in row.hyper)
    return {k: tuple(sorted({row.hyper[k] for row in rows_of_loss if k in row.hyper})) for k in keys}


def best(rows: list[LossRow], column: str) -> LossRow:
    """Return the row with the highest score in a column.

    Raises:
        ValueError: If there are no rows.
    """
    return max(rows, key=lambda row: row.scores[column])
