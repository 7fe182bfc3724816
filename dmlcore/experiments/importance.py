"""Importance of settings for the scores of finished runs, computed with fANOVA from an Optuna study of the runs.

fANOVA (Hutter, Hoos & Leyton-Brown 2014) returns the share of the score variance, over the whole range of the settings,
that each setting explains alone. In a simulation with score 3a + 1.5b + noise (standard deviation 0.3) and five
settings, fANOVA ranked a first and b second in 9 of 20 draws with 10 runs, in 17 of 20 draws with 20 runs and in 19 of
20 draws with 30 runs; PED-ANOVA did so in 5, 8 and 12 draws.
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

LEAST = 6  # minimum number of runs to analyse
FEW = 20  # below this number of distinct settings (`points`), the ranking is unreliable
WIDE = 30.0  # minimum ratio of a setting's largest to its smallest value for which a logarithmic scale is used
MOST = 12  # maximum number of settings that are analysed
UNSAID = ("name", "device", "fork.run", "fork.step")


@dataclass(frozen=True)
class Trials:
    """Finished runs as trials of an Optuna study.

    Attributes:
        study: The Optuna study.
        keys: Parameter name in the study -> key of a setting that all runs have and that differs between runs.
        alike: Parameter name -> keys of further settings that vary together with it, so that their effects cannot be
            separated.
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
        """Number of distinct settings, ignoring the seed; repeats add no information on the other settings."""
        seeds = {name for name, key in self.keys.items() if key == "seed"}
        every = self.study.get_trials(deepcopy=False)
        return len({tuple((k, v) for k, v in sorted(trial.params.items()) if k not in seeds) for trial in every})


def trials(
    runs: Sequence[tuple[Settings, float]],
    *,
    title: Callable[[str], str] = lambda key: key,
    word: Callable[[str, Any], str] = lambda key, value: str(value),
) -> Trials:
    """Convert two or more runs into trials of an Optuna study.

    Settings that not all runs have are left out. If the runs differ in their loss, pooling or miner, the
    hyper-parameters of that loss, pooling or miner are left out too.

    Args:
        runs: Settings and score of each run; larger scores are better.
        title: Function that returns the displayed name of a key.
        word: Function that returns the displayed value of a key.
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

    Returns {} if there are fewer than LEAST runs, no setting varies, or all scores are equal.
    """
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    scores = {trial.value for trial in made.study.get_trials(deepcopy=False)}
    if made.count < LEAST or not made.keys or len(scores) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fANOVA is marked experimental and warns about it
        shares = get_param_importances(made.study, evaluator=FanovaImportanceEvaluator(seed=0))
    return {name: float(share) for name, share in sorted(shares.items(), key=lambda pair: -pair[1])}


def _comparable(every: Sequence[Settings]) -> list[str]:
    """Return keys of varying settings that all runs have, without parameters of a varying loss, pooling or miner."""
    keys = [key for key in varying(every) if key not in UNSAID and all(key in settings for settings in every)]
    mixed = [section for section in CATALOGUES if f"{section}.name" in keys]
    return [key for key in keys if not any(key.startswith(f"{section}.parameters.") for section in mixed)]


def _group_inseparable(every: Sequence[Settings], keys: Sequence[str]) -> list[list[str]]:
    """Group keys whose settings vary together, so that their effects cannot be separated."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for key in keys:
        groups.setdefault(_pattern([settings[key] for settings in every]), []).append(key)
    return list(groups.values())


def _pattern(values: Sequence[Any]) -> tuple[int, ...]:
    """Return a tuple that is equal for settings whose effects cannot be separated.

    For distinct numbers it holds the rank of each run's value; a setting and its reverse order give the same tuple.
    Otherwise it assigns each run a group number, shared by runs with equal values.
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
    """Return a setting's Optuna distribution and values: a range if all values are finite numbers, else categories."""
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
