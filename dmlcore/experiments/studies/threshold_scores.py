"""Scores of the thresholds of runs: equal error rate, consistency over classes, and rates on test classes.

A threshold promises a false match rate on the validation classes of a run, or on its training classes, as is often
done; both are measured on the test classes (`dmlcore.metrics.transfer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dmlcore.storage.runs import RunStore

if TYPE_CHECKING:
    from dmlcore.experiments.studies.results import Measured
    from dmlcore.inspection.class_sides import ClassSides

EER, OPIS, FNMR = "eer", "opis", "fnmr"  # of the test classes; the last at the threshold of the validation classes
MEASURED, OF_TRAINING = "fmr", "fmr.train"  # rates on test classes, by the classes on which the threshold is chosen
LOW, HIGH = "fmr.low", "fmr.high"  # ends of the 95 % interval of MEASURED over bootstrap samples of the classes
TRAINING_LOW = "fmr.train.low"  # lower end of that of OF_TRAINING
UNKNOWN = (0.0, 1.0)  # interval of a rate of fewer than three classes


def add(
    runs: Sequence[Measured], store: RunStore, fmr: float, *, report: Callable[[str], object] = lambda _: None
) -> list[Measured]:
    """Return the runs with the scores of their thresholds, and of the thresholds of their baselines.

    Runs that are not in the store keep their scores. Baselines are computed once for each data set, network and seed.

    Args:
        runs: Measured runs.
        store: Store that has them.
        fmr: Promised false match rate, in 0..1, above 0.
        report: Callback for progress messages.

    Raises:
        ThresholdError: If a run has no validation classes; see `dmlcore.inspection.class_sides.sides`.
        ValueError: If the promised rate is below one pair of the validation classes.
    """
    from dmlcore import metrics  # imports torch
    from dmlcore.inspection import class_sides

    known: dict[str, dict[str, dict[str, float]]] = {}
    added = []
    for number, measured in enumerate(runs, 1):
        if not measured.run:
            added.append(measured)
            continue
        report(f"threshold of run {number} of {len(runs)}: {measured.variant}, seed {measured.seed}")
        run = store.open(measured.run)
        sides, trained = class_sides.sides(run), class_sides.sides(run, seen="train").seen
        of_training = metrics.transfer(trained.pairs, sides.unseen.pairs, fmr)
        own = _scores(sides, fmr) | {
            OF_TRAINING: of_training.measured,
            TRAINING_LOW: (of_training.interval or UNKNOWN)[0],
        }
        network = f"{run.spec.data} {run.spec.model} {run.spec.pooling} {run.spec.seed}"
        if network not in known:
            known[network] = {
                _baseline(name, bool(run.spec.model.start)): _scores(pair, fmr)
                for name, pair in class_sides.baselines(run).items()
            }
        baselines = {name: values | known[network].get(name, {}) for name, values in measured.baselines.items()}
        added.append(measured.model_copy(update={"scores": measured.scores | own, "baselines": baselines}))
    return added


def _baseline(name: str, started: bool) -> str:
    """Return the name of a baseline in results, where an untrained network with pretrained weights is "pretrained"."""
    return "pretrained" if started and name == "untrained" else name


def _scores(pair: ClassSides, fmr: float) -> dict[str, float]:
    from dmlcore import metrics

    moved = metrics.transfer(pair.seen.pairs, pair.unseen.pairs, fmr)
    low, high = moved.interval or UNKNOWN
    return {
        EER: pair.unseen.pairs.eer,
        OPIS: pair.unseen.opis.score,
        FNMR: moved.fnmr,
        MEASURED: moved.measured,
        LOW: low,
        HIGH: high,
    }
