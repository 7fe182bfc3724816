"""Importance of settings for the scores of finished runs: runs become trials of an Optuna study, analysed by fANOVA.

fANOVA (Hutter, Hoos & Leyton-Brown 2014) gives the share of the variance of the scores, over the whole range of the
settings, that each setting explains alone. For scores 3a + 1.5b + noise (deviation 0.3) over five settings, a and b are
ranked first in this order in 9 of 20 draws of 10 runs, in 17 of 20 runs and in 19 of 30 runs; by PED-ANOVA in 5, 8 and
12.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dmlcore.experiments.settings import Settings, varying
from dmlcore.training.objective import CATALOGUES

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

LEAST = 6  # fewer runs are not analysed
FEW = 20  # with fewer points, an order means little
WIDE = 30.0  # ratio of largest to smallest value from which a logarithmic scale is used
MOST = 12  # largest number of settings
UNSAID = ("name", "device", "fork.run", "fork.step")


@dataclass(frozen=True)
class Trials:
    """Finished runs as trials of an Optuna study.

    `keys` are the settings that vary and that all runs have, by the name of their parameter in the study. `alike`
    holds, by the same name, further settings that vary together with it, so that their effects cannot be separated.
    """

    study: optuna.Study
    keys: dict[str, str]
    alike: dict[str, tuple[str, ...]]

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self.study.get_trials(deepcopy=False))

    @property
    def points(self) -> int:
        """Number of runs that differ in more than the seed; repeats add no information on other settings."""
        seeds = {name for name, key in self.keys.items() if key == "seed"}
        every = self.study.get_trials(deepcopy=False)
        return len({tuple((k, v) for k, v in sorted(trial.params.items()) if k not in seeds) for trial in every})


def trials(
    runs: Sequence[tuple[Settings, float]],
    *,
    title: Callable[[str], str] = lambda key: key,
    word: Callable[[str, Any], str] = lambda key, value: str(value),
) -> Trials:
    """Convert two or more runs, given as settings and score (larger is better), into trials of a study.

    Parameters of a formula are left out if the runs use several formulas, and so are settings that not all runs have.

    Args:
        runs: Settings and score of each run.
        title: Function from a key to its displayed name.
        word: Function from key and value to the displayed value.
    """
    import optuna  # slow to import

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    every = [settings for settings, _ in runs]
    groups = _group_inseparable(every, _comparable(every))[:MOST]
    names = {title(group[0]): group for group in groups}
    columns = {name: _column(group[0], every, word) for name, group in names.items()}
    study = optuna.create_study(direction="maximize", study_name="runs")
    distributions = {name: distribution for name, (distribution, _) in columns.items()}
    study.add_trials(
        [
            optuna.trial.create_trial(
                params={name: values[place] for name, (_, values) in columns.items()},
                distributions=distributions,
                value=score,
            )
            for place, (_, score) in enumerate(runs)
        ]
    )
    keys = {name: group[0] for name, group in names.items()}
    return Trials(study, keys, {name: tuple(group[1:]) for name, group in names.items() if len(group) > 1})


def importances(made: Trials) -> dict[str, float]:
    """Return the share of the score variance that each setting explains alone, normalised to sum 1, largest first.

    Returns {} if there are fewer than LEAST runs, nothing varies, or all scores are equal.
    """
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    scores = {trial.value for trial in made.study.get_trials(deepcopy=False)}
    if made.count < LEAST or not made.keys or len(scores) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its interface is experimental and warns about it
        shares = get_param_importances(made.study, evaluator=FanovaImportanceEvaluator(seed=0))
    return {name: float(share) for name, share in sorted(shares.items(), key=lambda pair: -pair[1])}


def _comparable(every: Sequence[Settings]) -> list[str]:
    """Return the settings that vary and that have the same meaning in all runs."""
    keys = [key for key in varying(every) if key not in UNSAID and all(key in settings for settings in every)]
    mixed = [section for section in CATALOGUES if f"{section}.name" in keys]
    return [key for key in keys if not any(key.startswith(f"{section}.parameters.") for section in mixed)]


def _group_inseparable(every: Sequence[Settings], keys: Sequence[str]) -> list[list[str]]:
    """Group keys that divide the runs in the same way, so that their effects cannot be separated."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for key in keys:
        groups.setdefault(_pattern([settings[key] for settings in every]), []).append(key)
    return list(groups.values())


def _pattern(values: Sequence[Any]) -> tuple[int, ...]:
    """Return a pattern that is equal for settings with inseparable effects.

    It says which runs have equal values or, if no values are equal, in which order the runs are.
    """
    order = sorted(set(values)) if _numbers(values) else []
    if len(order) == len(values):
        ranks = [order.index(value) for value in values]
        return tuple(ranks if ranks[0] < ranks[-1] else [len(order) - 1 - rank for rank in ranks])
    seen: dict[str, int] = {}
    return (-1, *(seen.setdefault(repr(value), len(seen)) for value in values))


def _numbers(values: Sequence[Any]) -> bool:
    """Return True if all values are finite numbers."""
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in values)


def _column(
    key: str, every: Sequence[Settings], word: Callable[[str, Any], str]
) -> tuple[BaseDistribution, Sequence[Any]]:
    """Return a setting as Optuna represents it: a range if all values are finite numbers, else a categorical choice."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    values = [settings[key] for settings in every]
    if not _numbers(values):
        words = [word(key, value) for value in values]
        return CategoricalDistribution(sorted(set(words))), words
    low, high = min(values), max(values)
    log = low > 0 and high >= WIDE * low
    if all(isinstance(value, int) for value in values):
        return IntDistribution(low, high, log=log), values
    return FloatDistribution(float(low), float(high), log=log), [float(value) for value in values]
