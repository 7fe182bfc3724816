"""Which settings of finished runs go with their scores: the runs as trials of an Optuna study, and what fANOVA says.

fANOVA (Hutter, Hoos & Leyton-Brown 2014) gives the share of the variance of the scores, over the whole range of the
settings, that each explains by itself. Of scores 3a + 1.5b + noise (deviation 0.3) over five settings, a and b come
first in this order in 9 of 20 draws of 10 runs, in 17 of 20 runs and in 19 of 30 runs; by PED-ANOVA in 5, 8 and 12.
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

LEAST = 6  # runs, below which nothing is computed
FEW = 20  # points, below which an order means little
WIDE = 30.0  # times the smallest value, from which a range is seen by its logarithm
MOST = 12  # settings
UNSAID = ("name", "device", "fork.run", "fork.step")


@dataclass(frozen=True)
class Trials:
    """Finished runs as trials. keys: settings that vary in all of them, by the name of their parameter in the study.

    alike: by such a name, further settings that vary with it, so that nobody can tell them apart.
    """

    study: optuna.Study
    keys: dict[str, str]
    alike: dict[str, tuple[str, ...]]

    @property
    def count(self) -> int:
        """How many runs it rests on."""
        return len(self.study.get_trials(deepcopy=False))

    @property
    def points(self) -> int:
        """How many of them differ in more than the seed: repeats tell nothing new of the other settings."""
        seeds = {name for name, key in self.keys.items() if key == "seed"}
        every = self.study.get_trials(deepcopy=False)
        return len({tuple((k, v) for k, v in sorted(trial.params.items()) if k not in seeds) for trial in every})


def trials(
    runs: Sequence[tuple[Settings, float]],
    *,
    title: Callable[[str], str] = lambda key: key,
    word: Callable[[str, Any], str] = lambda key, value: str(value),
) -> Trials:
    """The study of runs, given as settings and score (larger is better), two or more; title, word: for what is shown.

    Parameters of a formula stay out where runs differ in the formula, and so does whatever not all runs have.
    """
    import optuna  # slow to import

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    every = [settings for settings, _ in runs]
    groups = _told_apart(every, _comparable(every))[:MOST]
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
    """Share of the variance of the scores that each setting explains by itself, adding up to 1, the largest first.

    {} where there are fewer than LEAST runs, nothing varies, or all scores are the same.
    """
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    scores = {trial.value for trial in made.study.get_trials(deepcopy=False)}
    if made.count < LEAST or not made.keys or len(scores) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its interface is experimental
        shares = get_param_importances(made.study, evaluator=FanovaImportanceEvaluator(seed=0))
    return {name: float(share) for name, share in sorted(shares.items(), key=lambda pair: -pair[1])}


def _comparable(every: Sequence[Settings]) -> list[str]:
    """The settings that vary and that all runs have in one meaning."""
    keys = [key for key in varying(every) if key not in UNSAID and all(key in settings for settings in every)]
    mixed = [section for section in CATALOGUES if f"{section}.name" in keys]
    return [key for key in keys if not any(key.startswith(f"{section}.parameters.") for section in mixed)]


def _told_apart(every: Sequence[Settings], keys: Sequence[str]) -> list[list[str]]:
    """Keys in groups of those that divide the runs in the same way."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for key in keys:
        groups.setdefault(_pattern([settings[key] for settings in every]), []).append(key)
    return list(groups.values())


def _pattern(values: Sequence[Any]) -> tuple[int, ...]:
    """What two settings share that cannot be told apart: which runs are equal or, where none are, in which order."""
    order = sorted(set(values)) if _numbers(values) else []
    if len(order) == len(values):
        ranks = [order.index(value) for value in values]
        return tuple(ranks if ranks[0] < ranks[-1] else [len(order) - 1 - rank for rank in ranks])
    seen: dict[str, int] = {}
    return (-1, *(seen.setdefault(repr(value), len(seen)) for value in values))


def _numbers(values: Sequence[Any]) -> bool:
    """Whether all are finite numbers."""
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in values)


def _column(
    key: str, every: Sequence[Settings], word: Callable[[str, Any], str]
) -> tuple[BaseDistribution, Sequence[Any]]:
    """A setting as Optuna has it: a range where all values are finite numbers, else a choice of words."""
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
