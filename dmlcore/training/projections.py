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

import numpy as np
import torch
from torch import Tensor

from dmlcore import processes
from dmlcore.geometry import covering_radius, k_center
from dmlcore.losses.engine.batch_loss import ProxyLoss
from dmlcore.losses.engine.distances import clip_to_unit_ball
from dmlcore.storage.metrics_rows import Row
from dmlcore.training import batches, optimisers
from dmlcore.training.objective import seed_of
from dmlcore.training.state import TrainingState
from dmlcore.typing import Floats, Ints

LEAST = 1e-5  # smallest increase of the score that counts as an improvement
# key of the proxies in `TrainingState.candidate`; the keys of network parameters start with NETWORK
PROXIES = "proxies"
NETWORK = "network."


def begin(state: TrainingState, *, place: bool = True) -> None:
    """Start the first projection; do nothing if the spec has no projections.

    If `place`, each proxy is set to the embedding of a sample of its class; else the proxies are left unchanged.
    """
    if not state.spec.projection.pool:
        return
    state.progress.projection = 1
    state.anchor, state.candidate = {}, {}
    if not place:
        return
    proxies, first = proxies_of(state), state.spec.projection.first
    for label, pool in _pools(state).items():
        # As in the code of Gurbuz 2022, farthest-first traversal starts from the origin, so the longest embedding comes
        # first.
        picks = (
            k_center(pool, pool[:1] * 0, len(proxies[label])) if first == "spread" else np.arange(len(proxies[label]))
        )
        _put(state, label, pool[picks])


def pull(state: TrainingState) -> None:
    """Add weight * (theta - theta*) to the gradients of the network; do nothing if there is no theta* yet."""
    if not state.anchor:
        return
    for name, parameter in state.model.named_parameters():
        if parameter.grad is not None:
            parameter.grad.add_(parameter.detach() - state.anchor[name], alpha=state.spec.projection.weight)


def after_validation(state: TrainingState, rows: list[Row]) -> list[Row]:
    """Compare the validation score with the best one in the current projection, and start the next projection if due.

    Returns:
        A list with the metrics row of the projection that ended, or [].
    """
    spec, progress = state.spec, state.progress
    score = next((row[spec.schedule.monitor] for row in rows if row["kind"] == "validation"), None)
    if not spec.projection.pool or score is None:
        return []
    if progress.projection_score is None or score > progress.projection_score + LEAST:
        progress.projection_score, progress.projection_stale = score, 0
        weights = {NETWORK + name: p.detach().clone() for name, p in state.model.named_parameters()}
        state.candidate = weights | {PROXIES: _metric(state).proxies.detach().clone()}
        return []
    progress.projection_stale += 1
    return [_end(state)] if progress.projection_stale >= spec.projection.patience else []


def _end(state: TrainingState) -> Row:
    """Store the best weights and proxies of the projection, choose new proxies, and return a metrics row about it."""
    progress, before = state.progress, state.anchor
    state.anchor = {name.removeprefix(NETWORK): p for name, p in state.candidate.items() if name.startswith(NETWORK)}
    per_class = _metric(state).per_class
    best = state.candidate[PROXIES].view(-1, per_class, state.candidate[PROXIES].shape[1])
    radii = []
    for label, pool in _pools(state).items():
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
    row: Row = {"kind": "projection", "step": progress.step, "projection": progress.projection}
    row |= {"score": progress.projection_score, "radius_before": float(covered), "radius_after": float(covers)}
    if before:
        # fsum is correctly rounded, so the order of the tensors in a checkpoint does not matter.
        squares = (float((state.anchor[name] - was).square().sum()) for name, was in before.items())
        row["moved"] = math.sqrt(math.fsum(squares))
    progress.projection += 1
    progress.projection_score, progress.projection_stale, state.candidate = None, 0, {}
    return row


def distance(state: TrainingState) -> dict[str, Tensor]:
    """Return the distance of the weights from theta* as an entry of a metrics row; {} in the first projection."""
    if not state.anchor:
        return {}
    parts = [(p.detach() - state.anchor[name]).square().sum() for name, p in state.model.named_parameters()]
    return {"projection_distance": torch.stack(parts).sum().sqrt()}


def proxies_of(state: TrainingState) -> Tensor:
    """Return a view of the proxies of the loss, (classes, per_class, D)."""
    metric = _metric(state)
    return metric.proxies.view(metric.classes, metric.per_class, -1)


def in_ball(points: Floats) -> Floats:
    """Scale points (N, D) longer than 1 to unit length, because losses with proxies compare points in the unit ball."""
    return clip_to_unit_ball(torch.from_numpy(points)).numpy()


def _metric(state: TrainingState) -> ProxyLoss:
    metric = state.loss.metric
    assert isinstance(metric, ProxyLoss)  # `objective.refuse_unusable` rejects other losses
    return metric


@torch.no_grad()
def _put(state: TrainingState, label: int, points: Floats) -> None:
    proxies = proxies_of(state)
    proxies[label] = torch.from_numpy(points).to(proxies)


def _pools(state: TrainingState) -> dict[int, Floats]:
    """Draw `projection.pool` samples per class, augment them as in training, and return their embeddings by class.

    The values have shape (pool, D). The draw depends only on the seed and the number of the projection. A class with
    fewer samples contributes some of them several times, each time with a new augmentation.
    """
    spec, data, split = state.spec, state.data, state.data.splits["train"]
    random = np.random.default_rng(seed_of(spec.seed, "pool", state.progress.projection))
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
            seed = seed_of(spec.seed, f"pool {state.progress.projection}", start)
            inputs = state.batches.prepared(indices[start : start + batches.CHUNK], seed)
            parts.append(state.model(inputs).float())
    embeddings = torch.cat(parts).cpu().double().numpy().reshape(len(classes), size, -1)
    return {int(label): pool for label, pool in zip(classes, embeddings, strict=True)}
