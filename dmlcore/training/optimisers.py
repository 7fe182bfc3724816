"""Optimiser of a training run: parameter groups, fused kernels, gradient clipping and warm-up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from dmlcore import eager
from dmlcore.models.networks import Network
from dmlcore.spec import RunSpec
from dmlcore.spec.optimisers import OPTIMISERS, OptimiserEntry
from dmlcore.spec.sections import OptimiserSpec, ScheduleSpec
from dmlcore.training.errors import TrainingError

# minimum number of parameters for the fused CPU kernel, which is then faster: Adam takes 31 instead of 72 ms for
# ResNet-18
LARGE = 1_000_000


def create(spec: RunSpec, model: Network, loss: nn.Module) -> torch.optim.Optimizer:
    """Create the optimiser for all parameters of network and loss, with the learning rates of step 1.

    Each group has the keys `part` ("backbone", "head" or "loss") and `base_lr`; parameters with equal learning rate and
    weight decay share a group. Fused kernels are used where they are available and faster.
    """
    entry = OPTIMISERS[spec.optimiser.name]
    arguments: dict[str, Any] = entry.arguments(spec.optimiser)
    if entry.fused:
        arguments["fused"] = _fused(entry, [*model.parameters(), *loss.parameters()])
    kind: type[torch.optim.Optimizer] = getattr(torch.optim, entry.torch_class)
    optimiser = eager.uncompiled(kind)(_groups(spec, model, loss), **arguments)
    start_momentum(optimiser)
    return optimiser


def is_fused(optimiser: torch.optim.Optimizer) -> bool:
    """Return True if the optimiser uses fused kernels, which can skip an update on the device."""
    return bool(optimiser.param_groups[0].get("fused"))


def disable_fused(optimiser: torch.optim.Optimizer) -> None:
    """Switch to unfused kernels, for a resumed run that used them before; fused kernels would round differently."""
    for group in optimiser.param_groups:
        group["fused"] = None


def start_momentum(optimiser: torch.optim.Optimizer) -> None:
    """Set the momentum of a fused SGD to zeros for parameters that have no momentum buffer yet.

    The fused kernel rejects a mixture of parameters with and without momentum, which occurs if some parameters receive
    their first gradient late: after a warm-up, or once a pooling has initialised its prototypes. With a momentum of
    zeros, the first update is the same bit for bit.
    """
    if isinstance(optimiser, torch.optim.SGD) and is_fused(optimiser) and optimiser.defaults["momentum"]:
        for parameter in parameters(optimiser):
            state = optimiser.state[parameter]
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = torch.zeros_like(parameter)


def learning_rates(optimiser: torch.optim.Optimizer) -> dict[str, float]:
    """Return the current learning rates: "learning_rate" of the backbone, and those of head and loss if they differ."""
    rate_of_part = {group["part"]: float(group["lr"]) for group in optimiser.param_groups}
    network = rate_of_part.get("backbone", next(iter(rate_of_part.values())))
    own = {f"{part}_learning_rate": rate for part, rate in rate_of_part.items() if rate != network}
    return {"learning_rate": network} | own


def parameters(optimiser: torch.optim.Optimizer) -> Iterator[nn.Parameter]:
    """Iterate over all parameters of the optimiser."""
    return (parameter for group in optimiser.param_groups for parameter in group["params"])


def clip(optimiser: torch.optim.Optimizer, spec: OptimiserSpec, norm: Tensor) -> None:
    """Scale the gradient to a norm of at most `clip_norm`, then clip each entry to +-`clip_value`.

    `norm` is the norm of the whole gradient.
    """
    if spec.clip_norm:
        nn.utils.clip_grads_with_norm_(parameters(optimiser), spec.clip_norm, norm)
    if spec.clip_value:
        nn.utils.clip_grad_value_(parameters(optimiser), spec.clip_value)


def frozen_at_first(schedule: ScheduleSpec, model: Network) -> list[nn.Parameter]:
    """Return the parameters that are frozen during the warm-up: all except those of new layers.

    New layers are those for pooling, embedding and conditioning. Without a warm-up the list is empty. Frozen parameters
    have no gradient, so the backward pass is cheaper and the optimiser has no moments for them. Batch norm layers still
    update their running statistics.

    Raises:
        TrainingError: If the network has no new layers.
    """
    if not schedule.warm_up:
        return []
    new = {id(parameter) for parameter in _new(model)}
    if not new:
        raise TrainingError("schedule.warm_up: this network has no new layers to train first; leave it at 0")
    # parameters of permanently frozen batch norm are not listed, so they remain frozen after the warm-up
    return [p for p in model.parameters() if id(p) not in new and p.requires_grad]


def _new(model: Network) -> list[nn.Parameter]:
    """Return the parameters that are not pretrained: those of the head and of the neighbour-conditioning module."""
    return [*model.head_parameters(), *(model.conditioning.parameters() if model.conditioning else [])]


def _groups(spec: RunSpec, model: Network, loss: nn.Module) -> list[dict[str, Any]]:
    """Group the parameters of model and loss by learning rate and weight decay, preserving their order."""
    o = spec.optimiser
    head = {id(p) for p in _new(model)} if o.head_factor != 1 else set()
    slow = {id(p) for m in loss.modules() if getattr(m, "at_network_rate", False) for p in m.parameters()}
    undecayed = set() if o.decay_batch_norm else {id(p) for p in _norms_and_biases((model, loss))}
    groups: dict[tuple[float, float], dict[str, Any]] = {}

    def add(parameter: nn.Parameter, part: str, rate: float) -> None:
        weight_decay = 0.0 if id(parameter) in undecayed else o.weight_decay
        group = {"params": [], "lr": rate, "base_lr": rate, "weight_decay": weight_decay, "part": part}
        groups.setdefault((rate, weight_decay), group)["params"].append(parameter)

    for parameter in model.parameters():
        is_head = id(parameter) in head
        part, rate = ("head", o.learning_rate * o.head_factor) if is_head else ("backbone", o.learning_rate)
        add(parameter, part, rate)
    for parameter in loss.parameters():
        own_rate = None if id(parameter) in slow else spec.loss.learning_rate
        add(parameter, "loss", own_rate or o.learning_rate)
    return list(groups.values())


def _norms_and_biases(roots: Iterable[nn.Module]) -> Iterator[nn.Parameter]:
    for module in (module for root in roots for module in root.modules()):
        norm = isinstance(module, (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm))
        for name, parameter in module.named_parameters(recurse=False):
            if norm or name.endswith("bias"):
                yield parameter


def _fused(entry: OptimiserEntry, parameters: list[nn.Parameter]) -> bool:
    if all(p.device.type == "cuda" for p in parameters):
        return True
    return entry.fused_on_cpu and sum(p.numel() for p in parameters) >= LARGE
