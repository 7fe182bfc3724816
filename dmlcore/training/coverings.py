"""Covering radii of training and test classes, and the distances between class means."""

from __future__ import annotations

import numpy as np
import torch

from dmlcore.data import Dataset
from dmlcore.geometry import average_covering_radius, covering_radius
from dmlcore.losses.engine.batch_loss import ProxyLoss
from dmlcore.losses.engine.distances import clip_to_unit_ball
from dmlcore.storage.metrics_rows import Row
from dmlcore.training.batches import embed
from dmlcore.training.objective import has_proxies_among_samples, seed_of
from dmlcore.training.state import TrainingState, embedder
from dmlcore.typing import Floats, Ints

CLASSES, SAMPLES = 500, 50  # maximum number of classes per split, and of samples per class


def is_due(state: TrainingState, step: int) -> bool:
    """Return True if covering radii are computed at this step."""
    every = state.spec.schedule.covering_every
    return every > 0 and step % every == 0


def row(state: TrainingState, kind: str = "covering", step: int | None = None) -> Row:
    """Return a metrics row with average covering radii and distances between class means.

    train_radius and test_radius are average covering radii; train_between and test_between are mean distances between
    class means. For losses whose proxies are points in the embedding space, proxy_radius is the radius with which the
    proxies of a class cover its samples, averaged over training classes. Embeddings longer than 1 are scaled to the
    unit ball, in which losses with proxies compare them.

    Reference:
        Gurbuz 2022, Ch. 3.
    """
    numbers: dict[str, float] = {}
    for split in ("train", "test"):
        indices = _draw_samples(state.data, split, state.spec.seed)
        if not len(indices):
            continue
        points = in_ball(embed(embedder(state), state.data, indices, state.device).astype(np.float64))
        labels = state.data.labels[indices]
        classes = np.unique(labels)
        means = np.stack([points[labels == label].mean(0) for label in classes])
        apart = np.linalg.norm(means[:, None] - means[None], axis=-1)
        numbers[f"{split}_radius"] = average_covering_radius(points, labels)
        numbers[f"{split}_between"] = float(apart.sum() / max(1, len(classes) * (len(classes) - 1)))
        metric = state.loss.metric
        if (
            kind == "covering"
            and split == "train"
            and isinstance(metric, ProxyLoss)
            and has_proxies_among_samples(state.spec.loss.name)
        ):
            own = in_ball(metric.proxies.detach().cpu().double().numpy()).reshape(metric.classes, metric.per_class, -1)
            numbers["proxy_radius"] = float(
                np.mean([covering_radius(points[labels == label], own[label]) for label in classes])
            )
    return {"kind": kind, "step": state.progress.step if step is None else step} | numbers


def in_ball(points: Floats) -> Floats:
    """Scale points (N, D) longer than 1 to unit length, because losses with proxies compare points in the unit ball."""
    return clip_to_unit_ball(torch.from_numpy(points)).numpy()


def _draw_samples(data: Dataset, split: str, seed: int) -> Ints:
    """Draw up to SAMPLES samples from each of up to CLASSES classes of a split; the draw is the same at every step."""
    random = np.random.default_rng(seed_of(seed, f"covering {split}"))
    indices = data.splits[split]
    labels = data.labels[indices]
    classes = np.unique(labels)
    if len(classes) > CLASSES:
        classes = np.sort(random.choice(classes, CLASSES, replace=False))
    members = [indices[labels == label] for label in classes]
    chosen = [np.sort(random.choice(m, SAMPLES, replace=False)) if len(m) > SAMPLES else m for m in members]
    return np.concatenate([indices[:0], *chosen])
