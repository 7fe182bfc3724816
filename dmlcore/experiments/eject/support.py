"""Runs that can be ejected, and the sentence that refuses others."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from dmlcore import losses
from dmlcore.catalogue import FROM_DATA
from dmlcore.losses.engine.table import BLOCK
from dmlcore.spec import RunSpec, flat, optimisers
from dmlcore.storage import checkpoint
from dmlcore.storage.checkpoint import Checkpoint
from dmlcore.storage.runs import Run


class EjectError(ValueError):
    """Error for a run that cannot be ejected; the message says why and what is supported."""


@dataclass(frozen=True)
class LossSource:
    """Hyper-parameters of a function of `template` that computes the loss of the same name.

    Attributes:
        arguments: Hyper-parameters that the function takes.
        fixed: Hyper-parameters that it does not take, with the only supported value.
        proxies: True if it takes learned proxies of the classes.
    """

    arguments: tuple[str, ...]
    fixed: Mapping[str, float | str] = field(default_factory=dict)
    proxies: bool = False


LOSSES = {
    "ranking": LossSource(("m",), {"m2": math.inf}),
    "distance_sensitive": LossSource(("s", "r", "rho", "m1", "m2")),
    "contrastive": LossSource(("m_pos", "m_neg"), {"distance": "euclidean", "divisor": "nonzero"}),
    "multi_similarity": LossSource(("alpha", "beta", "m", "epsilon")),
    "threshold_consistent_margin": LossSource(("m_pos", "m_neg")),
    "proxy_nca": LossSource(("temperature",), {"denominator": "all"}, proxies=True),
    "proxy_anchor": LossSource(("alpha", "delta"), proxies=True),
}
# losses whose file has at most 200 lines, without the term `loss.tcm`
FROZEN_LOSSES = ("ranking", "contrastive", "multi_similarity", "threshold_consistent_margin")
CHOICES: dict[str, Container[object]] = {  # settings of which only some values are supported
    "data.name": ("digits", "toy"),
    "data.split": (None, "samples", "classes"),
    "data.validation": (None, "samples", "classes", "none"),
    "model.name": ("mlp",),
    "loss.name": tuple(LOSSES),
    "miner.name": ("all",),
    "batch.sampler": ("balanced",),
    "batch.samples": range(65),  # each class of these data sets has at least that many training samples
    "optimiser.name": tuple(optimisers.OPTIMISERS),
}
FROZEN: dict[str, Container[object]] = {  # the same, for a linear layer on the features of a frozen network
    **CHOICES,
    "data.name": ("cub", "folder"),
    "data.split": (None, "classes"),
    "data.validation": (None, "classes", "none"),
    "model.name": ("efficientnet_lite0",),
    "model.start": ("imagenet",),
    "model.freeze": ("backbone",),
    "model.embedding_start": ("whitening",),
    "model.embedding_dim": range(1, 1281),  # the features have 1280 dimensions
    "pooling.name": ("gap",),
    "loss.name": FROZEN_LOSSES,
    "loss.reduction": ("mean_valid", "mean_nonzero"),
    "loss.tcm": (0.0,),
}
# settings that may have any value: those that the file contains, and those without influence on the weights of an MLP
FREE = {
    *("name", "protocol", "seed", "device", "ks", "pooling.name", "batch.classes"),
    *("batch.refresh", "batch.neighbours", "batch.balanced_steps", "loss.learning_rate", "data.standardize"),
    *("loss.tcm", "loss.tcm_m_pos", "loss.tcm_m_neg"),
    *("data.root", "data.augment", "data.crop", "data.crop_area", "data.crop_ratio"),
    *("model.hidden", "model.embedding_dim", "model.normalize"),
    *(f"optimiser.{key}" for key in ("learning_rate", "weight_decay", *optimisers.settings())),
    *(f"schedule.{key}" for key in ("steps", "validate_every", "monitor", "decay", "decay_every")),
    *(f"schedule.{key}" for key in ("decay_factor", "checkpoint_every", "keep_every", "measure_every", "cluster")),
    *("schedule.covering_every", "schedule.plateau_factor", "schedule.validate_test"),
}
SUPPORTED = (
    "Supported are two kinds of finished runs that one process trained on a CPU. One has data.name=digits or toy, "
    f"model.name=mlp, and loss.name={', '.join(LOSSES)}. The other has data.name=cub or folder, "
    "model.name=efficientnet_lite0, model.freeze=backbone, model.embedding_start=whitening, and "
    f"loss.name={', '.join(FROZEN_LOSSES)}. Both have batch.sampler=balanced, batch.samples up to 64, no miner, and "
    "any optimiser and learning rate decay. The first may have loss.tcm, unless loss.name=distance_sensitive. Other "
    "settings must have their defaults."
)

TOO_LONG = (
    "A network of convolutions that trains does not fit into 200 lines: the file of an MLP with the ranking loss has "
    "173, ResNet20 adds 40 and SqueezeNet 43, random crops 44 and GeM pooling 13, without reading ImageNet weights. "
    "Freeze the backbone, or load the trained network with dmlcore.load."
)


def require_supported(run: Run) -> Checkpoint:
    """Return the checkpoint of a run; raise EjectError unless the run can be ejected."""
    if wrong := unsupported(run.spec):
        reason = "" if run.spec.model.name == "mlp" or is_frozen(run.spec) else f"{TOO_LONG} "
        raise EjectError(f"{run.id}: cannot be ejected because of {', '.join(wrong)}. {reason}{SUPPORTED}")
    if run.state().state != "done":
        raise EjectError(f"{run.id}: is not finished. {SUPPORTED}")
    saved = checkpoint.load(run.path)
    if saved is None:
        raise EjectError(f"{run.id}: has no checkpoint. {SUPPORTED}")
    if saved.facts.get("device", "CPU") != "CPU" or saved.facts.get("processes", 1) != 1:
        where = f"{saved.facts.get('processes', 1)} x {saved.facts.get('device')}"
        raise EjectError(f"{run.id}: was trained on {where}, which rounds differently. {SUPPORTED}")
    if saved.facts.get("fused") and not is_frozen(run.spec):
        raise EjectError(f"{run.id}: its network is so large that a fused optimiser trained it. {SUPPORTED}")
    return saved


def is_frozen(spec: RunSpec) -> bool:
    """Return True if the backbone is frozen, so that only pooling, embedding layer and loss are trained."""
    return spec.model.freeze == "backbone"


def unsupported(spec: RunSpec) -> list[str]:
    """Return the settings of a spec that an ejected file cannot have, each as "key=value"."""
    values, defaults = flat(spec), flat(RunSpec())
    choices, free = (FROZEN, FREE | {"data.image_size"}) if is_frozen(spec) else (CHOICES, FREE)
    wrong = [key for key, supported in choices.items() if values[key] not in supported]
    checked = [key for key in values if key not in free and key not in choices and ".parameters" not in key]
    wrong += [key for key in checked if values[key] != defaults[key]]
    # the file of the distance-sensitive loss with this term has more than 200 lines
    wrong += ["loss.tcm"] if spec.loss.tcm and spec.loss.name == "distance_sensitive" else []
    words = [f"{key}={values[key]}" for key in wrong]
    return words + (_unsupported_parameters(spec) + _too_many_triplets(spec) if spec.loss.name in LOSSES else [])


def _unsupported_parameters(spec: RunSpec) -> list[str]:
    entry, values = LOSSES[spec.loss.name], losses.describe(spec.loss.name).resolve(spec.loss.parameters)
    wrong = [key for key, value in entry.fixed.items() if values[key] != value]
    wrong += [key for key in entry.arguments if values[key] in (math.inf, FROM_DATA)]
    # at r = 1 the potential of the distance-sensitive loss is a logarithm
    wrong += ["r"] if spec.loss.name == "distance_sensitive" and values["r"] == 1 else []
    return [f"loss.{key}={values[key]}" for key in wrong]


def _too_many_triplets(spec: RunSpec) -> list[str]:
    """Return the size of the batch if dmlcore would sum its energies in several blocks, which rounds differently."""
    b = spec.batch
    count = b.classes * b.samples**2 * (b.classes - 1) * b.samples
    # the ranking loss sums counts, which are exact in any order
    return [f"{count:,} triplets per batch"] if spec.loss.name == "distance_sensitive" and count > BLOCK else []
