"""Comparison of runs with a pinned baseline: score difference, its spread over seeds, and different settings."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dmlcore.significance import verdicts
from dmlcore.storage.runs import Run, RunError, RunStore
from pages.shared.words import sentences as words
from pages.training.runs.table.rows import Line

TESTED = ("data.name", "data.root", "data.split")  # settings that must agree for scores to be comparable


@dataclass(frozen=True)
class BaselineComparison:
    """Comparison of a run with the baseline.

    Attributes:
        points: Test MAP@R of the run minus that of the baseline, in percentage points; None if not comparable.
        noise: Phrase on the mean score difference over all seeds of the run's variant; None if unknown.
        differs: Settings in which the run differs from the baseline, as text.
    """

    points: float | None = None
    noise: str | None = None
    differs: str = ""


def find_baseline(store: RunStore, run_id: str) -> Run | None:
    """Return the run pinned as baseline; None if `run_id` is empty or the store has no such run."""
    try:
        return store.open(run_id) if run_id else None
    except RunError:
        return None


def variants(lines: Sequence[Line]) -> dict[str, dict[int, float]]:
    """Return the test MAP@R (0..1) of finished runs by variant and seed, averaged over runs with the same seed."""
    scores: dict[str, dict[int, list[float]]] = {}
    for each in lines:
        if each.status == "done" and (score := each.score()) is not None:
            scores.setdefault(each.variant, {}).setdefault(each.settings["seed"], []).append(score)
    return {name: {seed: statistics.fmean(many) for seed, many in seeds.items()} for name, seeds in scores.items()}


def noise(lines: Sequence[Line], baseline: Line) -> dict[str, str]:
    """Return, by variant, a phrase on its mean score difference from the baseline's variant over the seeds.

    Variants without a run tested on the same data as the baseline are omitted.
    """
    others = {each.run.id: each for each in [*lines, baseline]}
    known = variants(list(others.values()))
    tested = {each.variant for each in lines if comparable(each, baseline)}
    if baseline.variant not in known:
        return {}
    names = [name for name in known if name in tested and name != baseline.variant]
    gaps = [verdicts.gap(known[name], known[baseline.variant]) for name in names]
    clear = verdicts.clear(gaps)
    return {
        name: f"{gap.words}{', significant' if sure else ''}"
        for name, gap, sure in zip(names, gaps, clear, strict=True)
    }


def compare_with(lines: Sequence[Line], baseline: Line) -> list[BaselineComparison]:
    """Compare each run with the baseline; the score difference is None if the test data differ."""
    noises = noise(lines, baseline)
    return [_compare(each, baseline, noises) for each in lines]


def _compare(each: Line, baseline: Line, noises: Mapping[str, str]) -> BaselineComparison:
    if each.run.id == baseline.run.id:
        return BaselineComparison(differs="the baseline")
    mine, its = each.score(), baseline.score()
    points = 100 * (mine - its) if mine is not None and its is not None and comparable(each, baseline) else None
    return BaselineComparison(points, noises.get(each.variant), differs(each.run, baseline.run))


def comparable(each: Line, baseline: Line) -> bool:
    """Return True if both runs have the same test data, judged by the settings in TESTED."""
    return all(each.settings.get(key) == baseline.settings.get(key) for key in TESTED)


def differs(run: Run, baseline: Run) -> str:
    """Return, as text, the settings in which a run differs from the baseline; "" if a spec cannot be read."""
    try:
        _ = run.spec, baseline.spec
    except RunError:
        return ""
    return _differs(str(run.path.parent), baseline.id, run.id)


@lru_cache(maxsize=4096)
def _differs(root: str, baseline: str, run: str) -> str:
    """Return, as text, the settings in which two runs of the store at `root` differ.

    Cached, because specs never change and the table is redrawn often while a run is active.
    """
    store = RunStore(root)
    return "; ".join(words.changes(store.open(baseline).spec, store.open(run).spec)) or "nothing"
