"""Rows of the table of runs, and the columns that can be selected."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dmlcore.experiments.settings import varying
from dmlcore.inspection import notes
from dmlcore.inspection.tags_and_views import NotKept
from dmlcore.metrics import SCORES
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.runs import Run, RunError
from pages.shared.state import run_reader
from pages.shared.words import sentences as words
from pages.shared.words import titles
from pages.shared.words.labels import LABELS

AT_FIRST = 5  # largest number of settings shown by default
FEATURES = ("features", "whitened")  # columns of baselines that some runs do not have
FIXED = ("status", "run", "steps", "inputs", "untrained", *FEATURES, "trained")
LAST = ("validation", "note", "started")
TITLES = {"validation": "best validation"}
FURTHER = {name: entry.title for name, entry in SCORES.items() if entry.shown and name != "map_at_r"}


@dataclass
class Line:
    """Row of the table of runs: the values of one run, with defaults for those that cannot be read."""

    run: Run
    status: str
    label: str
    progress: float | None = None
    started: datetime | None = None
    seconds: float | None = None
    scores: Mapping[str, Row] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""
    note: str = ""

    def score(self, subject: str = "trained") -> float | None:
        """Return the test MAP@R (0..1) of a subject, such as "inputs" or "trained"; None if it was not measured."""
        value: float | None = self.scores.get(subject, {}).get("map_at_r")
        return value

    def best_validation(self) -> float | None:
        """Read and return the best validation MAP@R of the run in percent; None if it was never validated."""
        value = run_reader.reader().best_validation(self.run)
        return None if value is None else 100 * value


def line(run: Run) -> Line:
    """Return the table row of a run; values that cannot be read keep their defaults."""
    read = run_reader.reader()
    known = Line(run, run.status(), run.id)
    with suppress(RunError):
        state = run.state()
        known.label, known.note = titles.label(run), note(run)
        known.progress = 100 * state.step / max(1, state.steps)
        known.started, known.seconds = datetime.fromtimestamp(state.created, UTC), state.seconds
        known.scores, known.settings, known.variant = read.scores(run), read.settings(run), read.variant(run)
        if run.is_embedding_set:  # nothing was trained, so only the settings of its data apply
            known.progress = known.progress if known.status != "done" else 100.0
            known.settings = {
                key: known.settings[key] for key in known.settings if key.startswith(("data.", "model.n"))
            }
    return known


def note(run: Run) -> str:
    """Return the note on a run; "" if it is unreadable, which the run's card reports."""
    try:
        return notes.read(run)
    except NotKept:
        return ""


def varying_keys(lines: Iterable[Line]) -> list[str]:
    """Return the keys of settings whose values differ between runs: names of data set, loss etc. first, the seed last.

    The device and the names of runs and forks are omitted.
    """
    known = [each.settings for each in lines if each.settings]
    keys = [key for key in _sort_keys(varying(known)) if key not in ("device", *words.UNSAID)] if known else []
    return sorted(keys, key=lambda key: (key == "seed", not key.endswith(".name")))


def informative_keys(lines: Sequence[Line]) -> list[str]:
    """Return the keys of varying settings that neither the data set nor the name in their section determines.

    For example, a margin is omitted if it differs only because the loss differs.
    """

    def follows(key: str) -> bool:
        names = {"data.name", f"{key.partition('.')[0]}.name"} - {key}
        return key not in ("seed", "data.name") and any(_determines(key, name, lines) for name in names)

    return [key for key in varying_keys(lines) if not follows(key)]


def _determines(key: str, name: str, lines: Sequence[Line]) -> bool:
    """Return True if, in these runs, the value of the setting `name` determines that of `key`."""
    known = {(each.settings.get(name), repr(each.settings.get(key))) for each in lines if each.settings}
    return len(known) == len({value for value, _ in known})


def available_columns(lines: Sequence[Line]) -> list[str]:
    """Return the names of all available columns: varying settings first, then scores, then the other settings."""
    first = varying_keys(lines)
    present = dict.fromkeys(name for each in lines for name in further_scores(each))
    rest = _sort_keys({key for each in lines for key in each.settings} - {*first, *words.UNSAID})
    return [*first, "validation", *present, *rest]


def further_scores(known: Line) -> dict[str, float]:
    """Return the test scores (0..1) by title, except MAP@R, and the training time in seconds."""
    trained = known.scores.get("trained")
    scores = {} if known.seconds is None else {"seconds": known.seconds}
    if trained:
        scores |= {f"R@{k}": value for k, value in trained["recall_at"].items() if value is not None}
        scores |= {title: trained[name] for name, title in FURTHER.items() if trained.get(name) is not None}
    return scores


def default_columns(lines: Sequence[Line]) -> list[str]:
    """Return the columns shown by default: the first AT_FIRST of `informative_keys`."""
    return informative_keys(lines)[:AT_FIRST]


def title(name: str) -> str:
    """Return the heading of the column `name`; for a setting, this is its label in the form."""
    return words.setting(name) if "." in name or name in LABELS else TITLES.get(name, name)


def values(name: str, lines: Sequence[Line]) -> list[Any]:
    """Return the values of a column, one per row; None where a row has none.

    The values of a setting are numbers if all of them are finite numbers, so that the column sorts numerically;
    otherwise they are text. Scores and progress are in percent, and `started` is a datetime.
    """
    if get := OWN.get(name):
        return [get(each) for each in lines]
    if "." not in name and name not in LABELS:
        factor = 1 if name == "seconds" else 100
        return [None if (score := further_scores(each).get(name)) is None else factor * score for each in lines]
    given = [each.settings.get(name) for each in lines]
    if all(value is None or _number(value) for value in given):
        return given
    # None for a run that lacks this setting, for example because it has another loss
    pairs = zip(lines, given, strict=True)
    return [words.value(name, value) if name in each.settings else None for each, value in pairs]


def sort_lines(lines: Sequence[Line], name: str, *, up: bool) -> list[Line]:
    """Return the rows sorted by a column, ascending if `up`, rows without a value last; the sort is stable."""
    column = values(name, lines)
    present = [(value, each) for value, each in zip(column, lines, strict=True) if value not in (None, "")]
    present.sort(key=lambda pair: pair[0], reverse=not up)
    return [*(each for _, each in present), *(e for value, e in zip(column, lines, strict=True) if value in (None, ""))]


def _sort_keys(keys: Iterable[str]) -> list[str]:
    """Return setting keys in the order of the form, each parameter after its loss, pooling or miner."""
    place = {key: number for number, key in enumerate(LABELS)}
    return sorted(keys, key=lambda key: (place.get(key, place.get(f"{key.split('.')[0]}.parameters", 99)), key))


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _score(subject: str) -> Callable[[Line], float | None]:
    return lambda known: None if (value := known.score(subject)) is None else 100 * value


OWN: Mapping[str, Callable[[Line], Any]] = {
    "status": lambda known: known.status,
    "run": lambda known: known.label,
    "steps": lambda known: known.progress,
    "inputs": _score("inputs"),
    "untrained": _score("untrained"),
    "features": _score("features"),
    "whitened": _score("whitened"),
    "trained": _score("trained"),
    "validation": lambda known: known.best_validation(),
    "note": lambda known: known.note,
    "started": lambda known: known.started,
}
