"""Promised and measured false match rates: a threshold chosen on some classes of a run, and its rates on test classes.

The written results of a study with `fmr` have these scores (`threshold_scores`).

Reference:
    Zhang et al. 2024 (arXiv 2307.04047), for the inconsistency of classes at one threshold (OPIS).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dmlcore.experiments.studies.by_seed import by_seed
from dmlcore.experiments.studies.results import Measured
from dmlcore.experiments.studies.threshold_scores import (
    EER,
    FNMR,
    HIGH,
    LOW,
    MEASURED,
    OF_TRAINING,
    OPIS,
    TRAINING_LOW,
)
from dmlcore.significance import verdicts

if TYPE_CHECKING:
    from dmlcore.experiments.studies.spec import Study

KEYS = ("map_at_r", EER, OPIS, FNMR, MEASURED, LOW, HIGH, OF_TRAINING, TRAINING_LOW)


def rows(
    study: Study, results: Sequence[Measured], baselines: Iterable[Mapping[str, Any]] = ()
) -> list[dict[str, str]]:
    """Return one table row per baseline and variant, variants by MAP@R, best first; [] without threshold scores.

    Scores are means and standard deviations over the seeds. The interval of the ratio is over bootstrap samples of the
    classes, its ends are means over the seeds.

    Args:
        study: Study with `fmr`.
        results: Its results.
        baselines: Rows of its baselines (`judgement.baseline_rows`).
    """
    values = _values(results)
    if not values:
        return []
    order = sorted(values, key=lambda name: -statistics.fmean(values[name]["map_at_r"].values()))
    shown = [_row(name, {key: each.values() for key, each in values[name].items()}, study.fmr) for name in order]
    of_baselines = [
        _row(row["variant"], {key: row[key][:1] for key in KEYS if key in row}, study.fmr)
        for row in baselines
        if MEASURED in row
    ]
    return [*of_baselines, *shown]


def _values(results: Iterable[Measured]) -> dict[str, dict[str, Mapping[int, float]]]:
    """Return the scores by variant, score and seed, of the variants that have all of KEYS."""
    runs = list(results)
    scores = {key: by_seed(runs, key) for key in KEYS}
    complete = [name for name in scores[MEASURED] if all(name in scores[key] for key in KEYS)]
    return {name: {key: scores[key][name] for key in KEYS} for name in complete}


def _row(name: str, values: Mapping[str, Iterable[float]], fmr: float) -> dict[str, str]:
    def shown(key: str, factor: float = 1.0) -> str:
        numbers = [factor * value for value in values.get(key, ())]
        return verdicts.spread(*verdicts.mean_and_deviation(numbers)) if numbers else ""

    low, high = (statistics.fmean(values[key]) / fmr for key in (LOW, HIGH))
    return {
        "variant": name,
        "MAP@R": shown("map_at_r"),
        "EER": shown(EER),
        "OPIS x 1000": shown(OPIS, 10),
        "missed": shown(FNMR),
        "false matches": shown(MEASURED),
        "measured / promised": f"{statistics.fmean(values[MEASURED]) / fmr:.2f} ({low:.2f} to {high:.2f})",
        "false matches, training classes": shown(OF_TRAINING),
    }


def summary(study: Study, results: Sequence[Measured]) -> list[str]:
    """Return sentences on the measured rates of the thresholds of all variants; [] without threshold scores.

    They count the variants whose 95 % interval over the test classes lies above the promised rate with every seed, and
    name those where it does with no seed.
    """
    values = _values(results)
    if not values:
        return []
    above, above_by_training = (
        sum(all(low > study.fmr for low in each[key].values()) for each in values.values())
        for key in (LOW, TRAINING_LOW)
    )
    kept = [name for name, each in values.items() if all(low <= study.fmr for low in each[LOW].values())]
    means = {name: statistics.fmean(each[MEASURED].values()) for name, each in values.items()}
    trained = {name: statistics.fmean(each[OF_TRAINING].values()) for name, each in values.items()}
    least, most = min(means, key=lambda name: means[name]), max(means, key=lambda name: means[name])
    promised = f"{100 * study.fmr:g} %"
    named = verdicts.join_names(kept) if kept else "none"
    whose, count = named if len(kept) <= 8 else f"{len(kept)}", f"{len(values)} {study.things}"
    lowest, highest = (f"{100 * find(trained.values()):.2g}" for find in (min, max))
    return [
        f"A threshold that promises {promised} false matches on the validation classes gives "
        f"{100 * means[least]:.2g} % ({least}) to {100 * means[most]:.2g} % ({most}) on test classes. The interval "
        f"over the classes lies above the promise with every seed for {above} of {count}, with no seed for {whose}.",
        f"A threshold that promises {promised} on the training classes gives {lowest} to {highest} % on test classes, "
        f"above the promise with every seed for {above_by_training} of {count}.",
    ]
