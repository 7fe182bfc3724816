"""Retrieval of unseen bird species from frozen features, plain and whitened, without any training by gradients.

The data are CUB-mini (or the CUB data in DML_DATA). The four folds are those of the fair protocol: each leaves a
quarter of the training classes out for validation, and the whitening is fitted to the other three quarters; "all" is
fitted to all training classes. The test classes are the same in every case. The rival is SqueezeNet 1.0.

Below each network: the whitening whose shrinkage has the best mean MAP@R on the validation classes of the four folds,
and the score of the four folds' embeddings concatenated (Musgrave et al. 2020). A fold's own score is that of a model
that has seen three quarters of the classes; the concatenation has seen all of them, like "all".
"""

from __future__ import annotations

import statistics

import numpy as np
import torch

from benchmarks.harness import command_line, machine
from dmlcore.metrics import RetrievalScores
from dmlcore.models import whitening
from dmlcore.spec import RunSpec
from dmlcore.storage.metrics_rows import Row
from dmlcore.training import evaluation, feature_baselines
from dmlcore.training.build import build, load_data
from dmlcore.training.state import TrainingState
from dmlcore.typing import Singles

FOLDS = 4
SHRINKAGES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
GOALS = {"features": 0.69, "whitened": 0.71}  # R@1 of EfficientNet-Lite 0
COMMON = ("data.name=cub", "data.split=classes", "model.freeze=backbone", "data.augment=false", "device=cpu")
NETWORKS = {
    "efficientnet_lite0": ("data.image_size=224", "model.name=efficientnet_lite0", "model.start=imagenet"),
    "squeezenet1_0": (
        *("data.image_size=227", "model.name=squeezenet1_0"),
        "model.start=squeezenet1_0-deep-compression.safetensors",
    ),
}
HEAD = (
    *("batch.classes=16", "batch.samples=4", "model.embedding_dim=512", "schedule.steps=200"),
    *("loss.name=multi_similarity", "optimiser.name=adam"),
)


def state_of(network: str, fold: int) -> TrainingState:
    """Return the state before training; fold 0 trains on all training classes."""
    folds = (
        (f"data.folds={FOLDS}", f"data.fold={fold}", "data.validation=classes") if fold else ("data.validation=none",)
    )
    spec = RunSpec().with_overrides([*COMMON, *NETWORKS[network], *HEAD, *folds])
    return build(spec, load_data(spec), torch.device("cpu"))


def baselines(network: str) -> None:
    """Print the test scores of a network in every fold, and whether the goals are reached."""
    scores: dict[str, list[Row]] = {}
    for fold in range(FOLDS + 1):
        rows = {row["of"]: row for row in feature_baselines.rows(state_of(network, fold)) if row["kind"] == "scores"}
        for name, row in rows.items():
            scores.setdefault(name, []).append(row)
        words = [
            f"{name} R@1 {_percent(r['recall_at']['1'])} MAP@R {_percent(r['map_at_r'])}" for name, r in rows.items()
        ]
        print(f"{network:20} {f'fold {fold}' if fold else 'all':7} {' | '.join(words)}", flush=True)
    for name, rows_of in scores.items():
        recall = statistics.fmean(row["recall_at"]["1"] for row in rows_of[1:])
        precision = statistics.fmean(row["map_at_r"] for row in rows_of[1:])
        goal = f", goal {_percent(GOALS[name])}" if network == "efficientnet_lite0" and name in GOALS else ""
        print(f"{network:20} mean of {FOLDS} folds, {name}: R@1 {_percent(recall)}, MAP@R {_percent(precision)}{goal}")


def choose_shrinkage(network: str) -> None:
    """Choose the shrinkage on the validation classes; print the test scores per fold and concatenated."""
    validated: dict[float, list[float]] = {}
    tested: dict[float, list[tuple[Singles, RetrievalScores]]] = {}
    for fold in range(1, FOLDS + 1):
        state = state_of(network, fold)
        rows = {split: state.data.splits[split] for split in ("train", "validation", "test")}
        features = {split: feature_baselines.extract(state, each) for split, each in rows.items()}
        for shrinkage in SHRINKAGES:
            embed = whitening.fit(features["train"], state.data.labels[rows["train"]], shrinkage=shrinkage)
            points = {split: embed(features[split]) for split in ("validation", "test")}
            scores = {split: evaluation.score(each, state.data, split, (1,)) for split, each in points.items()}
            validated.setdefault(shrinkage, []).append(scores["validation"].map_at_r or 0.0)
            tested.setdefault(shrinkage, []).append((points["test"], scores["test"]))
    best = max(validated, key=lambda shrinkage: statistics.fmean(validated[shrinkage]))
    for shrinkage in sorted({whitening.SHRINKAGE, best}):
        points_of, scores_of = zip(*tested[shrinkage], strict=True)
        recall = statistics.fmean(scores.recall_at[1] for scores in scores_of)
        precision = statistics.fmean(scores.map_at_r or 0.0 for scores in scores_of)
        joined = evaluation.score(np.hstack(points_of), state.data, "test", (1,))
        print(
            f"{network:20} whitened, shrinkage {shrinkage:g} (validation MAP@R "
            f"{_percent(statistics.fmean(validated[shrinkage]))}): mean of {FOLDS} folds R@1 {_percent(recall)}, "
            f"MAP@R {_percent(precision)}; concatenated R@1 {_percent(joined.recall_at[1])}, "
            f"MAP@R {_percent(joined.map_at_r or 0.0)}{', chosen' if shrinkage == best else ''}"
        )


def main() -> None:
    """Print the baselines."""
    command_line(__doc__).parse_args()
    torch.set_num_threads(1)
    print(machine("torch", "numpy"))
    for network in NETWORKS:
        baselines(network)
        choose_shrinkage(network)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


if __name__ == "__main__":
    main()
