"""Groups of runs: by the value of a setting, or by variant (runs that differ only in their seeds)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dmlcore.storage.runs import Run
from pages.shared.words import sentences as words
from pages.training.runs.state import VARIANT
from pages.training.runs.table import rows
from pages.training.runs.table.rows import Line

MOST_SAID = 4  # largest number of settings in the name of a variant
MOST_AVERAGED = 16  # largest number of runs per group whose curves are averaged


@dataclass(frozen=True)
class Group:
    """Group of runs with the same value of a setting, or with the same variant."""

    name: str
    lines: Sequence[Line]

    @property
    def newest(self) -> list[Run]:
        """The newest MOST_AVERAGED runs of the group, whose curves are averaged."""
        return sorted((each.run for each in self.lines), key=lambda run: run.id, reverse=True)[:MOST_AVERAGED]

    @property
    def legend(self) -> str:
        """Legend entry for the curves of the group: its name and the number of averaged runs."""
        count = len(self.newest)
        return f"{self.name}, {count} run{'s' if count > 1 else ''}"

    @property
    def scores(self) -> list[float]:
        """Test MAP@R in 0..1 of each run that has been tested."""
        return [score for each in self.lines if (score := each.score()) is not None]

    @property
    def mean(self) -> float | None:
        """Mean test MAP@R in 0..1; None if no run has been tested."""
        return statistics.fmean(self.scores) if self.scores else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation (ddof=1) of the test MAP@R; None for fewer than two scores."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else None

    @property
    def seeds(self) -> int:
        """Number of different seeds in the group."""
        return len({each.settings.get("seed") for each in self.lines if each.settings})


def groups(lines: Sequence[Line], by: str) -> list[Group]:
    """Group runs by the setting or variant `by`; sort groups by descending mean score, those without a score last."""
    named = _variants(lines) if by == VARIANT else [_named(each, by) for each in lines]
    members: dict[str, list[Line]] = {}
    for name, each in zip(named, lines, strict=True):
        members.setdefault(name, []).append(each)
    made = [Group(name, its) for name, its in members.items()]
    return sorted(made, key=lambda group: -1.0 if group.mean is None else group.mean, reverse=True)


def _named(each: Line, by: str) -> str:
    return words.value(by, each.settings.get(by)) if each.settings else "unreadable"


def _said(key: str, value: Any) -> str:
    """Return a setting's value as text for the name of a variant, with its label unless the value is a name."""
    named = words.value(key, value)
    return named if key.endswith(".name") else f"{words.setting(key)} {named}"


def _variants(lines: Sequence[Line]) -> list[str]:
    """Return the name of each run's variant: its distinctive settings, plus a digest prefix if names coincide."""
    keys = [key for key in rows.informative_keys(lines) if key != "seed"][:MOST_SAID]
    names = [" · ".join(_said(key, each.settings[key]) for key in keys if key in each.settings) for each in lines]
    of_name: dict[str, set[str]] = {}
    for name, each in zip(names, lines, strict=True):
        of_name.setdefault(name, set()).add(each.variant)
    return [
        (f"{name} ({each.variant[:4]})" if len(of_name[name]) > 1 else name) or "same settings"
        for name, each in zip(names, lines, strict=True)
    ]
