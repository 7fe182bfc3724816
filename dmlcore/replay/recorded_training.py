"""Training run in this process, recorded step by step so that a page can play, scrub and fork it."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore import losses
from dmlcore.data import Dataset
from dmlcore.losses.engine.table import pair_tables
from dmlcore.losses.pairs import Contrastive
from dmlcore.losses.threshold_consistency import ThresholdConsistentMargin
from dmlcore.metrics import RetrievalScores, retrieval
from dmlcore.models.networks import ImageNetwork, TokenNetwork
from dmlcore.spec import RunSpec, SpecError
from dmlcore.timeline.history import History
from dmlcore.training import batches, build, final_analyses, loop
from dmlcore.training.build import Objective, TrainingError
from dmlcore.training.state import TrainingState, progress_facts, restore, tensors
from dmlcore.typing import Bytes, Floats, Ints, Singles

Moves = Literal["both", "pulls", "pushes"]

MOST_STEPS = 20_000
# training steps between two snapshots; a fork recomputes the steps since the nearest earlier snapshot
SNAPSHOT_EVERY = 64
SCORE_EVERY = 10  # steps between two computations of MAP@R
AVERAGE = 64  # byte that encodes the weight of average pooling in a weight map
CHANGEABLE = ("loss", "optimiser.learning_rate", "pooling.mu", "pooling.epsilon")
_BUILDING = threading.Lock()  # initialisation uses torch's single global generator, so one network is built at a time


@dataclass(frozen=True)
class SpecChange:
    """Change to the spec of a live run that takes effect after step `step`.

    Attributes:
        step: Last step before the change.
        overrides: key=value overrides of the spec.
        moves: Pairs of samples whose gradients train the network: "pulls" (same class), "pushes" (different classes) or
            "both"; None keeps the current setting.
    """

    step: int
    overrides: tuple[str, ...] = ()
    moves: Moves | None = None

    @property
    def first(self) -> int:
        """Index of the first frame that the change affects."""
        return self.step + 1


@dataclass(frozen=True)
class LiveSpec:
    """Spec of a recorded training run.

    Attributes:
        run: Spec of the run to train.
        changes: Changes during training, sorted by step.
        per_class: Maximum number of samples per class and split whose embeddings are recorded, called watched samples.
        splits: Splits of the watched samples; retrieval scores use the last one.
    """

    run: RunSpec
    changes: tuple[SpecChange, ...] = ()
    per_class: int = 40
    splits: tuple[str, ...] = ("train",)

    def __post_init__(self) -> None:
        """Sort the changes by step; raise SpecError or ValueError if one of them is invalid."""
        if not 1 <= self.per_class <= 10_000:
            raise ValueError(f"per_class must be in 1..10000, got {self.per_class}")
        for change in self.changes:
            if not 0 <= change.step <= MOST_STEPS:
                raise ValueError(f"a change must be at a step in 0..{MOST_STEPS}, got {change.step}")
            for override in change.overrides:
                if not override.startswith(CHANGEABLE):
                    raise SpecError(f"{override}: cannot change while training; can: {', '.join(CHANGEABLE)}")
            if change.moves not in (None, "both", "pulls", "pushes"):
                raise ValueError(f"moves must be both, pulls or pushes, got {change.moves!r}")
        object.__setattr__(self, "changes", tuple(sorted(self.changes, key=lambda change: change.step)))
        self.run_at(MOST_STEPS)

    def run_at(self, step: int) -> RunSpec:
        """Return the spec with all changes that take effect before step `step`; raise SpecError if it is invalid."""
        made = (override for change in self.changes if change.step < step for override in change.overrides)
        return self.run.with_overrides(made)

    def moves_at(self, step: int) -> Moves:
        """Return which pairs of samples train the network at step `step`: "both", "pulls" or "pushes" (see
        `SpecChange`).
        """
        return next((c.moves for c in reversed(self.changes) if c.step < step and c.moves), "both")


@dataclass(frozen=True, eq=False)
class TrainingFrame:
    """Recorded state after one training step; embeddings and scores are those of the watched samples."""

    step: int
    loss: float | None  # loss on the batch of this step; None before the first step
    active: float | None  # share of the batch's triplets with nonzero gradient; None for a loss without triplets
    nonzero: float | None
    map_at_r: float | None  # MAP@R of the watched samples; computed every SCORE_EVERY steps, otherwise None
    embeddings: Singles  # (n, D)
    tokens: Singles | None = None  # (vocabulary, D) token vectors, if inputs are bags of tokens
    prototypes: Singles | None = None  # (m, D) prototypes of the pooling, once they are initialised
    histograms: Singles | None = (
        None  # (classes, vocabulary): mean pooling weight of each token in the bags of each class
    )
    plane: Singles | None = None  # (n, 2) projection of the embeddings if D > 3, rotated to match the previous frame
    weights: Bytes | None = None  # (n, h * w) pooling weights; AVERAGE encodes average pooling
    recall: float | None = None  # R@1, for the same samples and steps as map_at_r


@dataclass(frozen=True, eq=False)
class _Snapshot:
    tensors: dict[str, Tensor]
    facts: dict[str, Any]
    run: RunSpec


class LiveTraining(History[LiveSpec, TrainingFrame]):
    """Recorded training run in this process. Its batches equal those of `python -m dmlcore train`.

    Raises:
        TrainingError, ModelError, DataError: If the run cannot be trained.
    """

    most_steps = MOST_STEPS

    def __init__(self, spec: LiveSpec, dataset: Dataset | None = None) -> None:
        super().__init__(spec)
        self.dataset = dataset or build.load_data(spec.run)
        self.watched = _watched(self.dataset, spec)
        self._snapshots: dict[int, _Snapshot] = {}
        labels = self.dataset.labels[self.watched]
        self._classes, self._class_of = np.unique(labels, return_inverse=True)
        self._scored = np.isin(self.watched, self.dataset.splits[spec.splits[-1]])
        self._state, self._at = self._build(spec.run), 0
        self.dataset = self._state.data  # includes the feature maps of a frozen backbone
        inputs = batches.to_device(self.dataset, self.watched, torch.device("cpu"))
        # convert once instead of for every frame
        self._inputs = inputs.float() if inputs.is_floating_point() else inputs
        batch = spec.run.batch.classes * spec.run.batch.samples
        self.steps_per_epoch = max(1, len(self.dataset.splits["train"]) // batch)
        self._keep_state()
        self.frames.append(self._look(None))

    @property
    def nbytes(self) -> int:
        """Upper bound on the memory use in bytes: recorded frames, training state snapshots and watched inputs."""
        arrays = (array for array in vars(self.frames[0]).values() if isinstance(array, np.ndarray))
        return len(self.frames) * (sum(array.nbytes for array in arrays) + 1256) + self._inputs.nbytes

    def curves(self, since: int = 0) -> dict[str, Floats]:
        """Return curves of recorded values over the frames from index `since` onwards; missing values are NaN.

        The keys are step, loss, active, nonzero, map_at_r and recall.
        """
        rows = self.frames[since:]
        columns = ("step", "loss", "active", "nonzero", "map_at_r", "recall")
        return {name: np.array([getattr(f, name) for f in rows], dtype=np.float64) for name in columns}

    def scored(self, vectors: Singles) -> RetrievalScores:
        """Return retrieval scores on the last of `splits`, given embeddings (n, D) of all watched samples."""
        labels = self.dataset.labels[self.watched]
        return retrieval(vectors[self._scored], labels[self._scored], ks=(1,))

    def weights(self) -> nn.Module:
        """Return the network after the last recorded step."""
        self._catch_up()
        return self._state.model

    # ---- one step
    def _begun(self, spec: LiveSpec, shared: int) -> LiveTraining:
        if not shared:
            return LiveTraining(spec)
        other = copy(self)
        History.__init__(other, spec)
        other._snapshots = {step: kept for step, kept in self._snapshots.items() if step < shared}
        other._state, other._at = self._build(spec.run), -1  # `_catch_up` restores the state before the first new step
        return other

    def _next(self) -> TrainingFrame:
        self._catch_up()
        return self._look(float(self._step()))

    def _build(self, run: RunSpec) -> TrainingState:
        with _BUILDING:
            return build.build(run, self.dataset, torch.device("cpu"))

    def _catch_up(self) -> None:
        """Restore the nearest snapshot and repeat the steps after it, up to the last recorded step."""
        if self._at == self.recorded:
            return
        kept = sorted(self._snapshots)
        step = kept[bisect_right(kept, self.recorded) - 1]
        snapshot = self._snapshots[step]
        self._state = self._build(snapshot.run)
        restore(self._state, snapshot.tensors, snapshot.facts, fused=True)
        self._at = step
        while self._at < self.recorded:
            self._step()

    def _step(self) -> Tensor:
        """Run one training step with the settings in effect at that step, and return its loss."""
        step = self._at + 1
        if any(change.step == self._at for change in self.spec.changes):
            self._obey(self.spec.run_at(step))
        loss = loop.step(self._state, step, _sided(self._state.loss, self.spec.moves_at(step)))
        self._at = step
        if step % SNAPSHOT_EVERY == 0:
            self._keep_state()
        return loss

    def _keep_state(self) -> None:
        kept = {name: tensor.detach().clone() for name, tensor in tensors(self._state).items()}
        self._snapshots[self._at] = _Snapshot(kept, progress_facts(self._state), self._state.spec)

    def _obey(self, run: RunSpec) -> None:
        """Switch to a changed spec, keeping the network weights and the optimiser state."""
        before = self._state.spec
        if run == before:
            return
        training_state = self._build(run)
        state = self._state.optimiser.state
        pairs = list(zip(self._state.model.parameters(), training_state.model.parameters(), strict=True))
        if run.loss.name == before.loss.name:
            pairs += zip(self._state.loss.parameters(), training_state.loss.parameters(), strict=True)
            training_state.loss.load_state_dict(self._state.loss.state_dict())
        training_state.model.load_state_dict(self._state.model.state_dict())
        training_state.batches.table = self._state.batches.table
        for old, new in pairs:
            if old in state:
                training_state.optimiser.state[new] = state[old]
        self._state = training_state

    # ---- one frame
    @torch.no_grad()
    def _look(self, loss: float | None) -> TrainingFrame:
        model = self._state.model.eval()
        embeddings = model(self._inputs).numpy()
        seen: dict[str, Any] = self._see_tokens(model) if isinstance(model, TokenNetwork) else {}
        if isinstance(model, ImageNetwork):
            seen["weights"] = _in_bytes(getattr(model.pool, "weights", None))
        if embeddings.shape[1] > 3:
            seen["plane"] = _plane(embeddings, self.frames[-1].plane if self.frames else None)
        model.train()
        numbers = self._state.loss.measured() if loss is not None else {}
        measured = {name: float(value) for name, value in numbers.items()}
        at = len(self.frames)
        scores = self.scored(embeddings) if at % SCORE_EVERY == 0 else None
        return TrainingFrame(
            step=at,
            loss=loss,
            active=measured.get("active"),
            nonzero=measured.get("nonzero"),
            map_at_r=scores.map_at_r if scores else None,
            recall=scores.recall_at[1] if scores else None,
            embeddings=embeddings,
            **seen,
        )

    def _see_tokens(self, model: TokenNetwork) -> dict[str, Singles]:
        tokens = model.tokens.numpy().copy()
        histograms = final_analyses.bag_histograms(model, self._inputs)
        classes = np.eye(len(self._classes), dtype=np.float32)[self._class_of]  # (n, classes)
        seen = {"tokens": tokens, "histograms": (classes / classes.sum(0)).T @ histograms}
        if bool(getattr(model.pool, "ready", False)):
            prototypes: Any = model.pool.prototypes
            seen["prototypes"] = prototypes.numpy().copy()
        return seen


def _plane(embeddings: Singles, before: Singles | None) -> Singles:
    """Return the two principal components (n, 2), rotated and mirrored to match those of the previous frame."""
    centred = torch.from_numpy(embeddings - embeddings.mean(0))
    axes = torch.linalg.eigh(centred.mT @ centred)[1][:, -2:].flip(1)
    points = centred @ axes
    if before is not None:  # align the axes with the previous frame by orthogonal Procrustes analysis (Schonemann 1966)
        left, _, right = torch.linalg.svd(points.mT @ torch.from_numpy(before))
        points = points @ left @ right
    plane: Singles = points.numpy()
    return plane


def _in_bytes(weights: Tensor | None) -> Bytes | None:
    """Return pooling weights (n, h * w) as bytes, where AVERAGE encodes 1 / (h * w); None without weights."""
    if weights is None or not len(weights):
        return None
    quantised: Bytes = (weights * weights.shape[1] * AVERAGE).round().clamp(0, 255).to(torch.uint8).numpy()
    return quantised


def _watched(dataset: Dataset, spec: LiveSpec) -> Ints:
    """Return the ascending indices of the first `per_class` samples of each class in each split of the spec."""
    chosen = []
    for split in spec.splits:
        if split not in dataset.splits:
            raise TrainingError(f"splits: no split {split!r}; there are {', '.join(dataset.splits)}")
        indices = dataset.splits[split]
        labels = dataset.labels[indices]
        chosen += [indices[labels == label][: spec.per_class] for label in np.unique(labels)]
    return np.sort(np.concatenate(chosen))


def _sided(objective: Objective, moves: Moves) -> Callable[..., Tensor] | None:
    """Return a loss with gradients from same-class pairs only ("pulls") or other pairs only ("pushes"), else None."""
    if moves == "both":
        return None
    metric = _sided_loss(objective.metric, moves)
    if objective.tcm is None:
        return metric
    tcm = _sided_loss(objective.tcm, moves)
    return lambda *batch: metric(*batch) + objective.tcm_weight * tcm(*batch)


def _sided_loss(metric: nn.Module, moves: Moves) -> Callable[..., Tensor]:
    half: nn.Module
    pulls = moves == "pulls"
    if isinstance(metric, losses.TripletLoss):
        return partial(_sided_triplets, metric, pulls)
    if isinstance(metric, Contrastive):
        margins = (metric.m_pos, -np.inf) if pulls else (np.inf, metric.m_neg)
        half = Contrastive(*margins, metric.distance, metric.divisor)
    elif isinstance(metric, ThresholdConsistentMargin):
        half = ThresholdConsistentMargin(*((metric.m_pos, np.inf) if pulls else (-np.inf, metric.m_neg)))
    else:
        known = "triplet losses, contrastive and threshold_consistent_margin"
        raise TrainingError(f"moves: {moves} alone are known for {known}; choose both")
    return lambda embeddings, labels, *_: half(embeddings, labels)


def _sided_triplets(metric: losses.TripletLoss, pulls: bool, embeddings: Tensor, labels: Tensor, *_: object) -> Tensor:
    # Norm terms act on single points and neither pull nor push, so norms are detached.
    distances, norms = pair_tables(embeddings)
    moving = (labels[:, None] == labels) == pulls
    return metric.of_tables(torch.where(moving, distances, distances.detach()), norms.detach(), labels)
