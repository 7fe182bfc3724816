"""Initialisation of a fork: matching weights, optimiser moments and progress come from its parent, the rest is reset.

A tensor of the loss is taken over if the new loss has a tensor of the same name, shape and initial value. Proxies
therefore are taken over, but a threshold with a changed initial value is not. Moments of the optimiser are taken over
with their parameter if the optimiser has the same kind of moments. If nothing was changed, everything is taken over,
and the fork repeats its parent bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dmlcore.spec import RunSpec, SpecError, flat
from dmlcore.spec.optimisers import OPTIMISERS
from dmlcore.storage import checkpoint, fork_parent
from dmlcore.storage.checkpoint import Checkpoint
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.run_directory import ORIGIN
from dmlcore.storage.runs import Run
from dmlcore.training import methods, objective, optimisers
from dmlcore.training.errors import TrainingError
from dmlcore.training.state import Parent, TrainingProgress, TrainingState, restore_moments

# Settings that a fork cannot change: those of the network, because its weights are taken over, and those of the test
# data.
FIXED = ("model.", "conditioning.", "pooling.name", "pooling.parameters", "data.", "seed")
FREE = ("data.root", "data.augment", "data.fresh", "data.crop", "data.crop_area", "data.crop_ratio")
# Settings that do not change the objective, so that the best weights of the parent remain candidates.
NEUTRAL = ("name", "protocol", "device", "ks", "fork.run", "fork.step", "data.root")


@dataclass(frozen=True)
class Origin:
    """Starting point of a fork: checkpoint and spec of the parent, and the parent's metrics rows up to there."""

    saved: Checkpoint
    spec: RunSpec
    rows: list[Row]


def refused_keys(parent: RunSpec, fork: RunSpec) -> list[str]:
    """Return the keys of settings that the fork has changed although a fork cannot change them."""
    return [key for key in _changes(parent, fork) if key.startswith(FIXED) and key not in FREE]


def same_question(parent: RunSpec, fork: RunSpec) -> bool:
    """Return True if best weights of parent and fork are comparable: same objective and same monitored score."""
    chooses = ("schedule.monitor", "schedule.monitor_part")
    return not any(
        key not in NEUTRAL and (key in chooses or not key.startswith("schedule.")) for key in _changes(parent, fork)
    )


def origin(run: Run) -> Origin | None:
    """Return the starting point of a fork; None for a run that is not a fork.

    Raises:
        TrainingError: If the checkpoint of the parent is missing, or a setting was changed that a fork cannot change.
    """
    if not run.spec.fork.run:
        return None
    if not (run.path / ORIGIN).is_file():
        raise TrainingError(f"fork.run: {run.id} lacks the checkpoint of {run.spec.fork.run}; create the fork again")
    saved = checkpoint.read(run.path / ORIGIN)
    parent = RunSpec.from_json(saved.facts["spec"])
    if keys := refused_keys(parent, run.spec):
        raise TrainingError(
            f"fork: {', '.join(keys)} cannot be changed, because the fork continues with the weights of "
            f"{run.spec.fork.run}"
        )
    try:
        return Origin(saved, parent, fork_parent.read_rows(run.path))
    except SpecError as error:
        raise TrainingError(str(error)) from None


def transfer(state: TrainingState, parent: Origin, classes: int) -> tuple[bool, dict[str, list[str]]]:
    """Copy the matching tensors of the parent into a new training state.

    `classes` is the number of classes for which the loss was created.

    Returns:
        True if the fork has the objective of its parent, so that the parent's best weights remain candidates; and
        entries for a metrics row: the keys of changed settings, and descriptions of what was carried over or reset.
    """
    saved, spec = parent.saved, state.spec
    whole = same_question(parent.spec, spec)
    state.model.load_state_dict(checkpoint.select_prefix(saved.tensors, "model"))
    old_loss = objective.create(parent.spec, classes, state.model).to(state.device)
    mine = _loss(state.loss, old_loss, checkpoint.select_prefix(saved.tensors, "loss"))
    kept = set(mine)
    carried: list[str] = ["network"]
    reset: list[str] = []
    for name, tensor in state.loss.state_dict().items():
        shown = f"{name.removeprefix('metric.')} of the loss ({' x '.join(map(str, tensor.shape)) or 'one number'})"
        (carried if name in kept else reset).append(shown)
    moments = _moments(state, parent, old_loss, kept)
    (carried if moments else reset).append(f"moments of {spec.optimiser.name}")
    restore_moments(state, moments, fused=saved.facts.get("fused", False))
    same_samples = _trains_on_same_samples(parent.spec, spec)
    table = checkpoint.select_prefix(saved.tensors, "table").get("embeddings")
    if table is not None and same_samples and state.batches.sampler.uses_table:
        state.batches.table = table.numpy()
    facts = dict(saved.facts)
    if not whole:
        slower = ("optimiser.learning_rate", "schedule.plateau", "schedule.plateau_factor")
        keeps = not any(key in _changes(parent.spec, spec) for key in slower)
        facts |= {"best_score": None, "best_step": saved.facts["step"], "stale": 0, "plateau": 0}
        # checkpoints of the first release do not contain this count
        facts |= {"halvings": facts.get("halvings", 0) if keeps else 0}
    state.progress = TrainingProgress.from_facts(facts)
    state.methods = methods.create(state)  # again, with the weights of the parent
    given = Parent(saved.tensors, facts, whole, same_samples, "metric.proxies" in kept)
    for method in state.methods:
        reset += method.fork(state, given)
    if whole:
        state.best = checkpoint.select_prefix(saved.tensors, "best")
        carried.append("best weights so far")
    else:
        reset.append("best weights, tracked from this step on")
    return whole, {"changed": _changes(parent.spec, spec), "carried": carried, "anew": reset}


def _trains_on_same_samples(parent: RunSpec, fork: RunSpec) -> bool:
    before, now = parent.fork, fork.fork
    return (before.leave_out, before.leave_out_samples) == (now.leave_out, now.leave_out_samples)


def _changes(parent: RunSpec, fork: RunSpec) -> list[str]:
    mine, theirs = flat(parent), flat(fork)
    return [key for key in sorted(mine.keys() | theirs.keys()) if mine.get(key) != theirs.get(key)]


def _loss(loss: nn.Module, old: nn.Module, saved: Mapping[str, Tensor]) -> list[str]:
    """Load the saved tensors of the loss with unchanged name, shape and initial value; return their names."""
    before, now = old.state_dict(), loss.state_dict()
    fits = [
        name
        for name in now
        if name in before and now[name].shape == before[name].shape and torch.equal(now[name], before[name])
    ]
    loss.load_state_dict({**now, **{name: saved[name] for name in fits}})
    return fits


def _moments(state: TrainingState, parent: Origin, old_loss: nn.Module, kept: set[str]) -> dict[str, Tensor]:
    """Return the optimiser moments of the parameters that were taken over, keyed by number in the new optimiser."""
    before, now = parent.spec.optimiser.name, state.spec.optimiser.name
    if before != now and not (OPTIMISERS[before].state and OPTIMISERS[before].state == OPTIMISERS[now].state):
        return {}
    numbers_before = _numbers(optimisers.create(parent.spec, state.model, old_loss), state.model, old_loss)
    numbers_now = _numbers(state.optimiser, state.model, state.loss)
    moments: dict[str, Tensor] = {}
    for name, tensor in checkpoint.select_prefix(parent.saved.tensors, "optimiser").items():
        number, _, entry = name.partition(".")
        parameter = next(key for key, value in numbers_before.items() if value == int(number))
        if parameter in numbers_now and (parameter.startswith("model.") or parameter.removeprefix("loss.") in kept):
            moments[f"{numbers_now[parameter]}.{entry}"] = tensor
    return moments


def _numbers(optimiser: torch.optim.Optimizer, model: nn.Module, loss: nn.Module) -> dict[str, int]:
    """Return the number of each parameter in the optimiser, by parameter name."""
    named = {id(p): f"model.{name}" for name, p in model.named_parameters()}
    named |= {id(p): f"loss.{name}" for name, p in loss.named_parameters()}
    return {named[id(parameter)]: number for number, parameter in enumerate(optimisers.parameters(optimiser))}
