"""What every published table is made of: rows with their values as printed, and what is known of a table."""

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
    """One row: what was trained on what, and its values by column as printed; spread: deviations where printed."""

    method: str
    values: Mapping[str, Value]
    dataset: str = ""
    network: str = ""
    size: str = ""  # of the embedding
    setting: str = ""  # hyper-parameters as text
    loss: str = ""  # of our catalogue
    hyper: Mapping[str, float] | None = None
    spread: Mapping[str, float] | None = None
    damaged: tuple[str, ...] = ()  # columns whose value was read from damaged text

    @property
    def alike(self) -> tuple[str, str, str]:
        """What rows share that may be compared: data, network, size of the embedding."""
        return self.dataset, self.network, self.size

    def score(self, column: str) -> float | None:
        """The value of a score in per cent, whatever the source calls it: R@1 is also Recall@1 and P@1."""
        for name, value in self.values.items():
            if SAME.get(name, name) == column and isinstance(value, (int, float)):
                return float(value)
        return None


@dataclass(frozen=True)
class PublishedTable:
    """One published table."""

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
        """For links: K-4.2."""
        return f"{self.source}-{self.number.replace(' ', '-')}"

    @property
    def title(self) -> str:
        """For example "Karaman 2021, Table 4.2"."""
        kind = "Figure" if self.number.startswith("fig ") else "Table"
        return f"{SHORT[self.source]}, {kind} {self.number.removeprefix('fig ')}"

    @property
    def columns(self) -> list[str]:
        """Of all rows, in order."""
        return list(dict.fromkeys(column for row in self.rows for column in row.values))

    @property
    def scores(self) -> list[str]:
        """The columns that are scores, of which more is better."""
        return [column for column in self.columns if SCORE.fullmatch(column)]

    @property
    def datasets(self) -> list[str]:
        """Of its rows."""
        return list(dict.fromkeys(row.dataset for row in self.rows if row.dataset))

    def errata(self) -> list[Erratum]:
        """Those of its source that name this table."""
        named = (re.findall(r"\d[\d.]*[a-z]?", e.where.partition("Table")[2]) for e in errata())
        return [
            e for e, tables in zip(errata(), named, strict=True) if e.source == self.source and self.number in tables
        ]


@cache
def loss_title(name: str) -> str:
    """Of a loss of the catalogue; empty for none."""
    return losses.describe(name).title if name else ""
