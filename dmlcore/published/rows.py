"""Rows and tables of published results, with the values as printed and the metadata of each table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from dmlcore import losses
from dmlcore.published.errata import Erratum, errata
from dmlcore.published.table_reader import sources

Value = float | str | None

SHORT = {letter: source.title for letter, source in sources().items()}
SAME = {"Recall@1": "R@1", "Recall@2": "R@2", "Recall@4": "R@4", "Recall@8": "R@8", "P@1": "R@1", "MAP@R": "MAP@R"}
SCORE = re.compile(r"(R@|P@|MAP@R|NMI|F1|Recall@|kNN-Acc)[\dR]*")


@dataclass(frozen=True)
class PublishedRow:
    """Row of a published table: method, data set, network, and the printed value of each column.

    Attributes:
        method: Name of the method.
        values: Values by column.
        dataset: Name of the data set.
        network: Name of the network.
        size: Embedding size.
        setting: Hyper-parameters as text.
        loss: Name of the loss in the catalogue of dmlcore, or "" if the catalogue does not contain it.
        hyper: Hyper-parameters as numbers, if stated.
        spread: Printed standard deviations by column, if any.
        damaged: Columns whose value was read from damaged text.
    """

    method: str
    values: Mapping[str, Value]
    dataset: str = ""
    network: str = ""
    size: str = ""
    setting: str = ""
    loss: str = ""
    hyper: Mapping[str, float] | None = None
    spread: Mapping[str, float] | None = None
    damaged: tuple[str, ...] = ()

    @property
    def alike(self) -> tuple[str, str, str]:
        """Attributes that comparable rows share: data set, network and embedding size."""
        return self.dataset, self.network, self.size

    def score(self, column: str) -> float | None:
        """Return a score in per cent by any of its names (R@1 is also Recall@1 and P@1); None if it is missing."""
        for name, value in self.values.items():
            if SAME.get(name, name) == column and isinstance(value, (int, float)):
                return float(value)
        return None


@dataclass(frozen=True)
class PublishedTable:
    """One published table, with its source and its rows."""

    source: str  # key of SHORT
    number: str
    caption: str
    citation: str
    rows: tuple[PublishedRow, ...]
    split: str = "test"
    protocol: str = ""
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Key as used in URLs, for example "K-4.2"."""
        return f"{self.source}-{self.number.replace(' ', '-')}"

    @property
    def title(self) -> str:
        """Title with its source, for example "Karaman 2021, Table 4.2"."""
        kind = "Figure" if self.number.startswith("fig ") else "Table"
        return f"{SHORT[self.source]}, {kind} {self.number.removeprefix('fig ')}"

    @property
    def columns(self) -> list[str]:
        """Columns of all rows, in order of appearance."""
        return list(dict.fromkeys(column for row in self.rows for column in row.values))

    @property
    def scores(self) -> list[str]:
        """Columns that are scores, for which higher is better."""
        return [column for column in self.columns if SCORE.fullmatch(column)]

    @property
    def datasets(self) -> list[str]:
        """Data sets of the rows, in order of appearance."""
        return list(dict.fromkeys(row.dataset for row in self.rows if row.dataset))

    def errata(self) -> list[Erratum]:
        """Errata of the table's source that name this table."""
        named = (re.findall(r"\d[\d.]*[a-z]?", e.where.partition("Table")[2]) for e in errata())
        return [
            e for e, tables in zip(errata(), named, strict=True) if e.source == self.source and self.number in tables
        ]


@cache
def loss_title(name: str) -> str:
    """Return the title of a loss of the catalogue; empty for an empty name."""
    return losses.describe(name).title if name else ""
