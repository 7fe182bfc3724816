"""Retrieval of unseen bird species after training the last stage of EfficientNet-Lite 0, in four folds.

The recipe is the spec `cub-tuned`. The folds are those of `benchmarks.bird_baselines`. Two rivals need no training: the
whitened features (average pooling, shrinkage 1), and the initial network of the recipe (GeM, shrinkage 4). "Joined" is
the score of the concatenated embeddings of the four fold models, whose whitenings together see all training classes.

Without options only validation classes are scored; `--untrained` compares poolings and shrinkages on them. `--test`
scores the test classes, for a recipe that is already chosen.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.bird_baselines import FOLDS
from benchmarks.harness import command_line, machine
from dmlcore.models import whitening
from dmlcore.presets import SPECS
from dmlcore.significance import gain, noise
from dmlcore.spec import RunSpec
from dmlcore.training import batches, evaluation, feature_baselines, loop
from dmlcore.training.build import build, load_data
from dmlcore.training.state import TrainingState, use_best
from dmlcore.typing import Singles

RIVALS = ("whitened", "initial")
POOLINGS = {"gap": 1.0, "gem 2": 2.0, "gem 3": 3.0, "gem 4": 4.0}
SHRINKAGES = (1.0, 2.0, 4.0, 8.0)


def state_of(fold: int, seed: int = 0, overrides: Sequence[str] = ()) -> TrainingState:
    """Return the state of the recipe before training; `overrides` change its settings."""
    spec = RunSpec.from_toml((SPECS / "cub-tuned.toml").read_text())
    spec = spec.with_overrides(["device=cpu", f"data.folds={FOLDS}", f"data.fold={fold}", f"seed={seed}", *overrides])
    return build(spec, load_data(spec), torch.device("cpu"))


def embeddings(fold: int, seed: int, split: str, overrides: Sequence[str]) -> dict[str, Singles]:
    """Train the recipe; return the embeddings (n, D) of a split by the rivals and by the best weights."""
    state = state_of(fold, seed, overrides)
    train = state.data.splits["train"]
    fitted = whitening.fit(feature_baselines.extract(state, train), state.data.labels[train])
    rows = batches.rows_of(state.data, split)[0]
    made = {"whitened": fitted(feature_baselines.extract(state, rows))}
    made["initial"] = evaluation.embed(state.model, state.data, split, state.device)
    evaluation.validate(state)
    for step in range(1, state.spec.schedule.steps + 1):
        state.model.train()
        loop.step(state, step)
        state.progress.step = step
        if step % state.spec.schedule.validate_every == 0:
            evaluation.validate(state)
    use_best(state)
    return made | {"trained": evaluation.embed(state.model, state.data, split, state.device)}


def score(state: TrainingState, split: str, points: Singles) -> dict[str, Any]:
    """Return the scores of embeddings, with their sums by class."""
    scores = evaluation.score(points, state.data, split, (1,), state.device)
    return evaluation.row("x", 0, scores, labels=evaluation.query_labels(state.data, split))


def compare(split: str, seeds: Iterable[int], overrides: Sequence[str]) -> None:
    """Print the scores of the recipe and of its rivals per seed, and the gains with their intervals."""
    means: dict[str, dict[int, float]] = {}
    sums: dict[str, list[Mapping[str, Any]]] = {}
    for seed in seeds:
        kept = {fold: embeddings(fold, seed, split, overrides) for fold in range(1, FOLDS + 1)}
        states = {fold: state_of(fold) for fold in kept}
        for name in kept[1]:
            rows = [score(states[fold], split, made[name]) for fold, made in kept.items()]
            sums.setdefault(name, []).extend(row["by_class"] for row in rows)
            means.setdefault(name, {})[seed] = statistics.fmean(row["map_at_r"] for row in rows)
            words = f"R@1 {_percent(statistics.fmean(row['recall_at']['1'] for row in rows))}"
            words += f" MAP@R {_percent(means[name][seed])}"
            if split == "test":
                joined = score(states[1], split, np.hstack([made[name] for made in kept.values()]))
                words += f" | joined R@1 {_percent(joined['recall_at']['1'])} MAP@R {_percent(joined['map_at_r'])}"
            print(f"{split}, seed {seed}, mean of {FOLDS} folds, {name:9} {words}", flush=True)
    for rival in RIVALS:
        over_seeds = noise.gap(means["trained"], means[rival])
        difference = gain.difference(_sums_by_class(sums["trained"], split), _sums_by_class(sums[rival], split))
        p = "" if over_seeds.p is None else f", p = {over_seeds.p:.2g}"
        mean, low, high = (f"{100 * each:+.1f}" for each in difference)
        print(f"trained - {rival}: {over_seeds.words}{p}; {mean} [{low}, {high}] over classes")


def compare_untrained() -> None:
    """Print the validation scores of whitened features by pooling and shrinkage, means of the folds."""
    scores: dict[tuple[str, float], list[tuple[float, float]]] = {}
    for fold in range(1, FOLDS + 1):
        state = state_of(fold)
        train, rows = state.data.splits["train"], state.data.splits["validation"]
        for name, power in POOLINGS.items():
            state.model.pool.p.data.fill_(power)  # type: ignore[union-attr, operator]
            fitted_to, points = (_pooled(state, each) for each in (train, rows))
            for shrinkage in SHRINKAGES:
                embed = whitening.fit(fitted_to, state.data.labels[train], shrinkage=shrinkage)
                row = score(state, "validation", embed(points))
                scores.setdefault((name, shrinkage), []).append((row["recall_at"]["1"], row["map_at_r"]))
    for (name, shrinkage), pairs in scores.items():
        recall, precision = (statistics.fmean(each) for each in zip(*pairs, strict=True))
        print(f"validation, {name}, shrinkage {shrinkage:g}: R@1 {_percent(recall)} MAP@R {_percent(precision)}")


def main() -> None:
    """Print the comparison."""
    parser = command_line(__doc__)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings of the recipe to change")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--test", action="store_true", help="score the test classes")
    parser.add_argument("--untrained", action="store_true", help="compare poolings and shrinkages without training")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(machine("torch", "numpy"))
    if asked.untrained:
        compare_untrained()
    else:
        compare("test" if asked.test else "validation", range(asked.seeds), asked.overrides)


def _pooled(state: TrainingState, rows: Any) -> Singles:
    model: Any = state.model
    with batches.evaluation_mode(model):
        return batches.embed(lambda inputs: model.pool(model.features(inputs)), state.data, rows, state.device, 64)


def _sums_by_class(rows: list[Mapping[str, Any]], split: str) -> dict[str, list[float]]:
    """Return the sums by class over all rows; rows of different classes are concatenated first."""
    if split == "test":
        return {key: np.sum([row[key] for row in rows], 0).tolist() for key in rows[0]}
    count = len(rows) // FOLDS  # seeds; the four folds of a seed validate on different classes
    whole = [
        {key: [x for row in rows[i * FOLDS : (i + 1) * FOLDS] for x in row[key]] for key in rows[0]}
        for i in range(count)
    ]
    return {key: np.sum([row[key] for row in whole], 0).tolist() for key in rows[0]}


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


if __name__ == "__main__":
    main()
