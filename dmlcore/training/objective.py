"""Objective of a training run: the metric loss on mined tuples, and the terms that a spec adds to it.

These are the loss between the samples of a batch (`loss.batch_pairs`), zero-shot prediction (`pooling.zero_shot`), and
the threshold-consistent margin (`loss.tcm`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore import losses, mining, pooling
from dmlcore.catalogue import Catalogue
from dmlcore.losses.engine.table import Counts
from dmlcore.losses.memory import CrossBatchMemory
from dmlcore.losses.threshold_consistency import ThresholdConsistentMargin
from dmlcore.models.networks import Network
from dmlcore.models.seeded import seeded
from dmlcore.spec import RunSpec, SpecError, own_network
from dmlcore.training.errors import TrainingError

Tuples = tuple[Tensor, ...]
# Catalogues for the sections of the spec whose parameters depend on the name that is chosen.
CATALOGUES: Mapping[str, Catalogue[Any]] = {
    "loss": losses.LOSSES,
    "miner": mining.MINERS,
    "pooling": pooling.POOLINGS,
}


class Objective(nn.Module):
    """Loss of a training run: the metric loss, and the terms that are added to it.

    Args:
        metric: Metric loss.
        zero_shot: Zero-shot prediction from prototype shares, which is mixed with the metric loss; None for none.
        share: Share of the zero-shot prediction loss in this mixture.
        miner: Miner of the tuples for the metric loss; None for all tuples.
        batch_pairs: Weight of the metric loss between the samples of a batch, for losses of proxies; 0 for none.
        tcm: Threshold-consistent margin over all pairs of a batch, whatever tuples are mined; None for none.
        tcm_weight: Weight of `tcm`, which is added to the mixture.
    """

    def __init__(
        self,
        metric: nn.Module,
        zero_shot: pooling.ZeroShotPrediction | None = None,
        share: float = 0.0,
        miner: mining.BatchMiner | None = None,
        batch_pairs: float = 0.0,
        tcm: ThresholdConsistentMargin | None = None,
        tcm_weight: float = 0.0,
    ) -> None:
        super().__init__()
        self.metric, self.zero_shot, self.share, self.miner = metric, zero_shot, share, miner
        self.batch_pairs = batch_pairs
        self.tcm, self.tcm_weight = tcm, tcm_weight
        self.values: dict[str, Tensor] = {}  # unweighted values of the added terms for the last batch, by name

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        shares: Tensor | None = None,
        tuples: Tuples | None = None,
        generator: torch.Generator | None = None,
        pooled: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar loss of a batch.

        Args:
            embeddings: Embeddings, (B, D).
            labels: Integer labels, (B,).
            shares: Prototype shares, (B, m); ignored if they require no gradient, as before the prototypes are
                initialised.
            tuples: Index tuples that the sampler has mined.
            generator: Random generator for miners that draw at random.
            pooled: Inputs of the embedding layer, (B, P), for losses that read them.
        """
        # Computed first, so that the backward pass adds its gradient to the complete gradient of the metric loss, as
        # ejected files do.
        inconsistency: Tensor | None = None if self.tcm is None else self.tcm(embeddings, labels)
        if tuples is None and self.miner is not None:
            tuples = self.miner(embeddings, labels, generator=generator)
        metric: Any = self.metric
        between: Tensor | None = (
            metric.between(embeddings, labels) if self.batch_pairs else None
        )  # computed first, because it overwrites the triplet counts of the loss
        more: dict[str, Any] = {} if tuples is None else {"indices_tuple": tuples}
        if getattr(metric, "reads_pooled", False):
            more["pooled"] = pooled
        loss: Tensor = self.metric(embeddings, labels, **more)
        if between is not None:
            loss = loss + self.batch_pairs * between
        self.values = {}
        if self.zero_shot is not None and shares is not None and shares.requires_grad:
            predicted: Tensor = self.zero_shot(shares, labels)
            self.values["zero_shot"] = predicted.detach()
            loss = pooling.mixed(loss, predicted, self.share)
        if inconsistency is not None:
            self.values["tcm"] = inconsistency.detach()
            loss = loss + self.tcm_weight * inconsistency
        return loss

    def measured(self) -> dict[str, float | Tensor]:
        """Return statistics of the last batch by name.

        These are triplet statistics, what the metric loss reports itself (its method `measured`, for example the
        losses and weights of ensemble members, or a learned threshold), and the unweighted values of the terms
        "zero_shot" and "tcm". On a GPU the values are tensors, so that reading them later does not delay the step.
        """
        counts: Counts | None = getattr(self.metric, "counts", None)
        numbers = counts.shares() if counts is not None else {}
        if measured := getattr(self.metric, "measured", None):
            numbers |= measured()
        return numbers | self.values


def create(spec: RunSpec, classes: int, model: Network) -> Objective:
    """Create the objective with the losses and the miner that a spec names, initialised from the seed of the spec.

    Raises:
        TrainingError: If one of them cannot be created; the message names the section of the spec.
    """
    refuse_unusable(spec)
    layer = getattr(model, "embedding_layer", None)
    bare, zero_shot, share = metric_loss(spec, classes, layer.in_features if layer else 0), None, spec.pooling.zero_shot
    if layer and getattr(bare, "reads_pooled", False):
        layer.keeps_input = True
    if share:
        if model.shares is None:
            raise TrainingError(f"pooling.zero_shot: {spec.pooling.name} has no prototypes to predict from; choose gsp")
        with seeded(seed_of(spec.seed, "zero-shot")):
            zero_shot = pooling.ZeroShotPrediction(
                classes, spec.model.embedding_dim, epsilon=spec.pooling.ridge, scale=spec.pooling.logit_scale
            )
    hyper: dict[str, Any] = dict(spec.miner.parameters)
    miner = None if spec.miner.name == mining.ALL else mining.create(spec.miner.name, **hyper)
    tcm = ThresholdConsistentMargin(spec.loss.tcm_m_pos, spec.loss.tcm_m_neg) if spec.loss.tcm else None
    return Objective(_with_memory(spec, bare), zero_shot, share, miner, spec.loss.batch_pairs, tcm, spec.loss.tcm)


def metric_loss(spec: RunSpec, classes: int, pooled_dim: int = 0) -> nn.Module:
    """Create the metric loss that a spec names, initialised from the seed of the spec.

    Args:
        spec: Spec of the run.
        classes: Number of training classes.
        pooled_dim: Number of input features of the embedding layer.
    """
    sizes = {"classes": classes, "embedding_dim": spec.model.embedding_dim, "pooled_dim": pooled_dim}
    with seeded(seed_of(spec.seed, "loss")):
        parameters: dict[str, Any] = dict(spec.loss.parameters)
        return losses.for_training(spec.loss.name, reduction=spec.loss.reduction, **sizes, **parameters)


def refuse_unknown(spec: RunSpec) -> None:
    """Raise SpecError if the loss, miner or pooling, or one of their parameters, is not in the catalogues.

    It is also raised if the network is one of the user's own that this process may not import.

    The message has one line per section. A spec itself accepts any name, so that runs of other versions can be read;
    call this before a spec is shown in a form, used in a hyper-parameter search or trained. Nothing is built.
    """
    reason = own_network.refusal(spec.model.name)
    mistakes = [f"model.name: {reason}"] if reason else []
    for section, entries in CATALOGUES.items():
        chosen = getattr(spec, section)
        try:
            entries[chosen.name].resolve(chosen.parameters)
        except (KeyError, TypeError, ValueError) as error:
            mistakes.append(f"{section}: {error.args[0]}")
    if mistakes:
        raise SpecError("\n".join(mistakes))


def refuse_unusable(spec: RunSpec) -> None:
    """Raise TrainingError if the loss, miner or pooling cannot be created, or cannot be combined with each other.

    Only the catalogue entries are checked; nothing is built.
    """
    surroundings: dict[str, dict[str, Any]] = {
        "loss": {"reduction": spec.loss.reduction, "embedding_dim": spec.model.embedding_dim}
    }
    if pools_last(spec):
        surroundings["loss"]["pooled_dim"] = 0
    for section, entries in CATALOGUES.items():
        chosen = getattr(spec, section)
        try:
            entries[chosen.name].complete(chosen.parameters, **surroundings.get(section, {}))
        except (KeyError, TypeError, ValueError) as error:
            raise TrainingError(f"{section}: {error.args[0]}") from None
    loss = losses.describe(spec.loss.name)
    if not mining.fits(spec.miner.name, loss):
        raise TrainingError(
            f"miner: {spec.miner.name} chooses tuples of samples, and {spec.loss.name} has none; use miner.name=all"
        )
    if spec.loss.memory and not getattr(loss, "pairs", False):
        raise TrainingError(f"loss.memory: a memory needs a loss of pairs, which {spec.loss.name} is not; set it to 0")
    for key, value in (("loss.batch_pairs", spec.loss.batch_pairs), ("projection.pool", spec.projection.pool)):
        if value and not has_proxies_among_samples(spec.loss.name):
            known = ", ".join(name for name in losses.LOSSES if has_proxies_among_samples(name))
            raise TrainingError(f"{key}: needs a loss of pairs with proxies ({known}), which {spec.loss.name} is not")
    if spec.loss.proxy_start != "random" and not getattr(loss, "proxies", False):
        raise TrainingError(f"loss.proxy_start: {spec.loss.name} learns no proxies; set it to random")
    if spec.conditioning.neighbours and joins_learners(spec.loss.name):
        raise TrainingError(
            f"conditioning.neighbours: {spec.loss.name} combines the embeddings of several learners; set it to 0"
        )
    if spec.loss.tcm and joins_learners(spec.loss.name):
        raise TrainingError(
            f"loss.tcm: {spec.loss.name} combines the embeddings of several learners, so that other similarities are "
            "compared with a threshold; set it to 0"
        )
    pool = spec.projection.pool
    if pool and pool < (per_class := loss.resolve(spec.loss.parameters)["per_class"]):
        raise TrainingError(f"projection.pool: {per_class} proxies cannot be selected from {pool} samples; use more")


def has_proxies_among_samples(name: str) -> bool:
    """Return True if the proxies of the loss `name` are points in the embedding space, like embeddings of samples."""
    return bool(getattr(losses.describe(name), "proxies_are_places", False))


def joins_learners(name: str) -> bool:
    """Return True if the loss `name` combines embeddings from several learners, as `Ensemble.embed` does."""
    return "diversity" in losses.describe(name).parameters


def pools_last(spec: RunSpec) -> bool:
    """Return True if the network embeds features before pooling, so that no embedding layer follows the pooling."""
    pools = spec.model.name != "mlp" and pooling.describe(spec.pooling.name).layer.projects_first
    return spec.model.name == "tokens" or pools


def seed_of(seed: int, purpose: str, step: int = 0) -> int:
    """Return an independent 64-bit seed for each (seed, purpose, step)."""
    words = [seed, step, *purpose.encode()]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def _with_memory(spec: RunSpec, metric: nn.Module) -> nn.Module:
    if not spec.loss.memory:
        return metric
    b = spec.batch
    size = b.classes * b.samples if b.sampler != "mined" else b.classes * b.samples // 3 * 3
    return CrossBatchMemory(metric, spec.loss.memory, size, spec.model.embedding_dim, spec.loss.memory_start)
