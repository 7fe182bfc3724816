"""Chance-constrained programming: a sequence of projections of the weights, each with new proxies per class.

A projection minimises weight / 2 |theta - theta*|^2 plus the loss against proxies, where theta* are the best weights of
the previous projection (the first one has no such term). A projection ends after `patience` validations in a row
without improvement. Then theta* and the proxies are set to their best values in this projection, and new proxies are
chosen by farthest-first traversal from a pool of samples per class; training continues from the current weights.

Reference:
    Gurbuz 2022, Ch. 3, Alg. 1, where the gradient has the wrong sign (see the errata).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dmlcore import processes
from dmlcore.geometry import covering_radius, k_center
from dmlcore.losses.engine.batch_loss import ProxyLoss
from dmlcore.storage.metrics_rows import Row
from dmlcore.training import batches, optimisers
from dmlcore.training.coverings import in_ball
from dmlcore.training.methods.base import method
from dmlcore.training.objective import seed_of
from dmlcore.training.state import Method, Parent, TrainingState
from dmlcore.typing import Floats, Ints

LEAST = 1e-5  # smallest increase of the score that counts as an improvement
# key of the proxies in `Projections.candidate`; the keys of network parameters start with NETWORK
PROXIES = "proxies"
NETWORK = "network."


@method(
    "projections",
    title="Chance-constrained projections",
    source="Gurbuz 2022, Ch. 3, Alg. 1",
    switch=lambda spec: spec.projection.pool > 0,
)
class Projections(Method):
    """Trains by a sequence of projections.

    Attributes:
        anchor: Parameters theta* of the network; empty in the first projection.
        candidate: Best parameters of the network and best proxies of the current projection.
        projection: Number of the current projection, from 1; 0 before the first one.
        projection_score: Best score in the current projection.
        projection_stale: Number of validations since `projection_score` was reached.
    """

    tensors = ("anchor", "candidate")
    facts = ("projection", "projection_score", "projection_stale")
    projection = 0
    projection_score: float | None = None
    projection_stale = 0

    def __init__(self, state: TrainingState) -> None:
        self.anchor: dict[str, Tensor] = {}
        self.candidate: dict[str, Tensor] = {}
        # train only the proxies of classes with samples; those of other classes are never initialised
        present = np.unique(state.data.labels[state.data.splits["train"]])
        _metric(state).trained = torch.from_numpy(present.astype(np.int64)).to(state.device)

    def begin(self, state: TrainingState) -> list[Row]:
        """Start the first projection: set each proxy to the embedding of a sample of its class."""
        self.projection = 1
        proxies, first = proxies_of(state), state.spec.projection.first
        for label, pool in self.pools(state).items():
            # As in the code of Gurbuz 2022, farthest-first traversal starts from the origin, so the longest embedding
            # comes first.
            size = len(proxies[label])
            picks = k_center(pool, pool[:1] * 0, size) if first == "spread" else np.arange(size)
            _put(state, label, pool[picks])
        return []

    def after_backward(self, state: TrainingState) -> None:
        """Add weight * (theta - theta*) to the gradients of the network; do nothing if there is no theta* yet."""
        if not self.anchor:
            return
        for name, parameter in state.model.named_parameters():
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach() - self.anchor[name], alpha=state.spec.projection.weight)

    def after_step(self, state: TrainingState, validation: list[Row]) -> list[Row]:
        """Compare the validation score with the best one in the current projection; start the next one if due.

        Returns:
            A list with the metrics row of the projection that ended, or [].
        """
        spec = state.spec
        score = next((row[spec.schedule.monitor] for row in validation if row["kind"] == "validation"), None)
        if score is None:
            return []
        if self.projection_score is None or score > self.projection_score + LEAST:
            self.projection_score, self.projection_stale = score, 0
            weights = {NETWORK + name: p.detach().clone() for name, p in state.model.named_parameters()}
            self.candidate = weights | {PROXIES: _metric(state).proxies.detach().clone()}
            return []
        self.projection_stale += 1
        return [self._end(state)] if self.projection_stale >= spec.projection.patience else []

    def measured(self, state: TrainingState) -> dict[str, Any]:
        """Return the distance of the weights from theta*; {} in the first projection."""
        if not self.anchor:
            return {}
        parts = [(p.detach() - self.anchor[name]).square().sum() for name, p in state.model.named_parameters()]
        return {"projection_distance": torch.stack(parts).sum().sqrt()}

    def fork(self, state: TrainingState, parent: Parent) -> list[str]:
        """Continue the projection of the parent; if the objective changed, start the first one, with known proxies."""
        if not parent.whole and parent.has_proxies:
            self.projection = 1
            return []
        return super().fork(state, parent)

    def _end(self, state: TrainingState) -> Row:
        """Store the best weights and proxies, choose new proxies, and return a metrics row about the projection."""
        before = self.anchor
        self.anchor = {n.removeprefix(NETWORK): p for n, p in self.candidate.items() if n.startswith(NETWORK)}
        per_class = _metric(state).per_class
        best = self.candidate[PROXIES].view(-1, per_class, self.candidate[PROXIES].shape[1])
        radii = []
        for label, pool in self.pools(state).items():
            existing = best[label].cpu().double().numpy()
            picks = k_center(pool, existing, per_class)
            inside, covering = in_ball(pool), in_ball(existing)
            radii.append((covering_radius(inside, covering), covering_radius(inside, inside[picks])))
            _put(state, label, pool[picks])
        # every process has computed the proxies, but machines may round differently
        processes.broadcast_tensors([_metric(state).proxies])
        covered, covers = np.mean(radii, axis=0)
        # The optimiser's moments belong to the previous proxies, so they are dropped.
        state.optimiser.state.pop(_metric(state).proxies, None)
        optimisers.start_momentum(state.optimiser)
        row: Row = {"kind": "projection", "step": state.progress.step, "projection": self.projection}
        row |= {"score": self.projection_score, "radius_before": float(covered), "radius_after": float(covers)}
        if before:
            # fsum is correctly rounded, so the order of the tensors in a checkpoint does not matter.
            squares = (float((self.anchor[name] - was).square().sum()) for name, was in before.items())
            row["moved"] = math.sqrt(math.fsum(squares))
        self.projection += 1
        self.projection_score, self.projection_stale, self.candidate = None, 0, {}
        return row

    def pools(self, state: TrainingState) -> dict[int, Floats]:
        """Draw `projection.pool` samples per class, augment them as in training, and return their embeddings by class.

        The values have shape (pool, D). The draw depends only on the seed and the number of the projection. A class
        with fewer samples contributes some of them several times, each time with a new augmentation.
        """
        spec, data, split = state.spec, state.data, state.data.splits["train"]
        random = np.random.default_rng(seed_of(spec.seed, "pool", self.projection))
        labels = data.labels[split]
        classes = np.unique(labels)
        size = spec.projection.pool
        drawn: list[Ints] = []
        for label in classes:
            members = split[labels == label]
            drawn.append(random.choice(members, size, replace=len(members) < size))
        indices = np.concatenate(drawn)
        parts: list[Tensor] = []
        with batches.evaluation_mode(state.model):
            for start in range(0, len(indices), batches.CHUNK):
                seed = seed_of(spec.seed, f"pool {self.projection}", start)
                inputs = state.batches.prepared(indices[start : start + batches.CHUNK], seed)
                parts.append(state.model(inputs).float())
        embeddings = torch.cat(parts).cpu().double().numpy().reshape(len(classes), size, -1)
        return {int(label): pool for label, pool in zip(classes, embeddings, strict=True)}


def proxies_of(state: TrainingState) -> Tensor:
    """Return a view of the proxies of the loss, (classes, per_class, D)."""
    metric = _metric(state)
    return metric.proxies.view(metric.classes, metric.per_class, -1)


def _metric(state: TrainingState) -> ProxyLoss:
    metric = state.loss.metric
    assert isinstance(metric, ProxyLoss)  # `objective.refuse_unusable` rejects other losses
    return metric


@torch.no_grad()
def _put(state: TrainingState, label: int, points: Floats) -> None:
    proxies = proxies_of(state)
    proxies[label] = torch.from_numpy(points).to(proxies)
