"""Comparison of runs with a pinned baseline: score difference, its spread over seeds, and different settings."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from dmlcore import data
from dmlcore.significance import verdicts
from dmlcore.storage.runs import Run, RunError, RunStore
from pages.shared.words import sentences as words
from pages.training.runs.table.columns import DIFFERS, NOISE, POINTS
from pages.training.runs.table.rows import Line


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


def compare_with(lines: Sequence[Line], baseline: Line) -> dict[str, list[Any]]:
    """Return the columns of the table that compare each run with the baseline.

    They hold the difference in test MAP@R in percentage points (None if the test data differ), a phrase on its mean
    over all seeds of the run's variant (None if unknown), and the settings in which the run differs.
    """
    noises = noise(lines, baseline)
    table: dict[str, list[Any]] = {POINTS: [], NOISE: [], DIFFERS: []}
    for each in lines:
        other, mine, its = each.run.id != baseline.run.id, each.score(), baseline.score()
        gap = None if mine is None or its is None or not comparable(each, baseline) else 100 * (mine - its)
        table[POINTS].append(gap if other else None)
        table[NOISE].append(noises.get(each.variant) if other else None)
        table[DIFFERS].append(differs(each.run, baseline.run) if other else "the baseline")
    return table


def comparable(each: Line, baseline: Line) -> bool:
    """Return True if both runs have the same test data: data set, folder, and test split."""
    return _tested(each.settings) == _tested(baseline.settings)


def _tested(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    name = settings.get("data.name")
    default = data.describe(name).split if name in data.names() else None
    return name, settings.get("data.root"), settings.get("data.split") or default


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
