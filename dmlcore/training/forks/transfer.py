"""The beginning of a fork: what fits of its parent's weights, moments and progress goes on, all else begins anew.

A tensor of the loss is carried over if the new loss has one of the same name and shape that would have begun the same
(so proxies are, but not a threshold whose start was changed); the moments of the optimiser with their parameter, if
the optimiser has the same ones. With nothing changed all is carried over, and the fork repeats its parent bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dmlcore.spec import RunSpec, SpecError, flat
from dmlcore.storage import checkpoint, fork_parent
from dmlcore.storage.checkpoint import Checkpoint
from dmlcore.storage.metrics_rows import Row
from dmlcore.storage.run_directory import ORIGIN
from dmlcore.storage.runs import Run
from dmlcore.training import objective, optimisers, reference
from dmlcore.training.errors import TrainingError
from dmlcore.training.state import (
    TrainingState,
    restore_fixed,
    restore_moments,
    restore_neighbourhood,
    restore_projection,
)

# What a fork cannot change: the network, whose weights it takes over, and what is tested.
FIXED = ("model.", "conditioning.", "pooling.name", "pooling.parameters", "data.", "seed")
FREE = ("data.root", "data.augment", "data.fresh", "data.crop", "data.crop_area", "data.crop_ratio")
# What leaves the question as it is, so that the best weights of the parent stay candidates.
NEUTRAL = ("name", "protocol", "device", "ks", "fork.run", "fork.step", "data.root")
SAME_MOMENTS = frozenset(("adam", "adamw"))


@dataclass(frozen=True)
class Origin:
    """The parent's checkpoint, its spec, and rows of its metrics that are true of the fork too."""

    saved: Checkpoint
    spec: RunSpec
    rows: list[Row]


@dataclass(frozen=True)
class Transfer:
    """What came of it: `whole` if the question is the parent's, the facts of its progress; words for people."""

    whole: bool
    facts: dict[str, Any]
    changed: list[str]
    carried: list[str]
    reset: list[str]
    has_proxies: bool = False  # they go on where they lie


def refused(parent: RunSpec, fork: RunSpec) -> list[str]:
    """The keys that a fork has changed and cannot change."""
    return [key for key in _changes(parent, fork) if key.startswith(FIXED) and key not in FREE]


def same_question(parent: RunSpec, fork: RunSpec) -> bool:
    """Whether scores of the fork's weights and the parent's best can be chosen from together."""
    chooses = ("schedule.monitor", "schedule.monitor_part")
    return not any(
        key not in NEUTRAL and (key in chooses or not key.startswith("schedule.")) for key in _changes(parent, fork)
    )


def origin(run: Run) -> Origin | None:
    """Where a run begins that is a fork; None for all others. Raises TrainingError if it was made without."""
    if not run.spec.fork.run:
        return None
    if not (run.path / ORIGIN).is_file():
        raise TrainingError(f"fork.run: {run.id} has lost the checkpoint of {run.spec.fork.run}; fork it again")
    saved = checkpoint.read(run.path / ORIGIN)
    parent = RunSpec.from_json(saved.facts["spec"])
    if keys := refused(parent, run.spec):
        raise TrainingError(f"fork: {', '.join(keys)} cannot be changed, as the weights of {run.spec.fork.run} go on")
    try:
        return Origin(saved, parent, fork_parent.rows_of(run.path))
    except SpecError as error:
        raise TrainingError(str(error)) from None


def transfer(state: TrainingState, parent: Origin, classes: int) -> Transfer:
    """Put what fits of the parent into a new training state; classes: of the loss, as for the parent."""
    saved, spec = parent.saved, state.spec
    whole = same_question(parent.spec, spec)
    state.model.load_state_dict(checkpoint.part(saved.tensors, "model"))
    old_loss = objective.create(parent.spec, classes, state.model).to(state.device)
    mine = _loss(state.loss, old_loss, checkpoint.part(saved.tensors, "loss"))
    kept = set(mine)
    carried: list[str] = ["network"]
    reset: list[str] = []
    for name, tensor in state.loss.state_dict().items():
        shown = f"{name.removeprefix('metric.')} of the loss ({' x '.join(map(str, tensor.shape)) or 'one number'})"
        (carried if name in kept else reset).append(shown)
    moments = _moments(state, parent, old_loss, kept)
    (carried if moments else reset).append(f"moments of {spec.optimiser.name}")
    restore_moments(state, moments, fused=saved.facts.get("fused", False))
    _table(state, parent)
    restore_fixed(state, saved.tensors)
    if state.reference is not None and not reference.restore(
        state.reference, checkpoint.part(saved.tensors, "reference")
    ):
        state.reference = reference.of(state.model, spec)
        reset.append("the network that embeddings are held to, as it is at this step")
    facts = dict(saved.facts)
    if whole:
        state.best, state.best_loss = (checkpoint.part(saved.tensors, part) for part in ("best", "best_loss"))
        restore_projection(state, saved.tensors)
        carried.append("best weights so far")
    else:
        slower = ("optimiser.learning_rate", "schedule.plateau", "schedule.plateau_factor")
        keeps = not any(key in _changes(parent.spec, spec) for key in slower)
        facts |= {"best_score": None, "best_step": saved.facts["step"], "stale": 0, "plateau": 0}
        facts |= {"halvings": facts.get("halvings", 0) if keeps else 0}  # the first release counted none
        facts |= {"projection": 0, "projection_score": None, "projection_stale": 0}
        reset.append("best weights, chosen from here on")
    return Transfer(whole, facts, _changes(parent.spec, spec), carried, reset, "metric.proxies" in kept)


def _changes(parent: RunSpec, fork: RunSpec) -> list[str]:
    mine, theirs = flat(parent), flat(fork)
    return [key for key in sorted(mine.keys() | theirs.keys()) if mine.get(key) != theirs.get(key)]


def _loss(loss: nn.Module, old: nn.Module, saved: Mapping[str, Tensor]) -> list[str]:
    """Load the tensors that fit, and that would have begun the same; their names."""
    before, now = old.state_dict(), loss.state_dict()
    fits = [
        name
        for name in now
        if name in before and now[name].shape == before[name].shape and torch.equal(now[name], before[name])
    ]
    loss.load_state_dict({**now, **{name: saved[name] for name in fits}})
    return fits


def _moments(state: TrainingState, parent: Origin, old_loss: nn.Module, kept: set[str]) -> dict[str, Tensor]:
    """The optimiser's tensors of each parameter that was carried over, under its number now."""
    names = {parent.spec.optimiser.name, state.spec.optimiser.name}
    if len(names) > 1 and not names <= SAME_MOMENTS:
        return {}
    before = _numbers(optimisers.create(parent.spec, state.model, old_loss), state.model, old_loss)
    now = _numbers(state.optimiser, state.model, state.loss)
    moments: dict[str, Tensor] = {}
    for name, tensor in checkpoint.part(parent.saved.tensors, "optimiser").items():
        number, _, entry = name.partition(".")
        parameter = next(key for key, value in before.items() if value == int(number))
        if parameter in now and (parameter.startswith("model.") or parameter.removeprefix("loss.") in kept):
            moments[f"{now[parameter]}.{entry}"] = tensor
    return moments


def _numbers(optimiser: torch.optim.Optimizer, model: nn.Module, loss: nn.Module) -> dict[str, int]:
    """The number that an optimiser gives each parameter, by its name."""
    named = {id(p): f"model.{name}" for name, p in model.named_parameters()}
    named |= {id(p): f"loss.{name}" for name, p in loss.named_parameters()}
    return {named[id(parameter)]: number for number, parameter in enumerate(optimisers.parameters(optimiser))}


def _table(state: TrainingState, parent: Origin) -> None:
    """The tables of sampler and neighbours, if of the same samples; otherwise they are made anew."""
    table = checkpoint.part(parent.saved.tensors, "table").get("embeddings")
    before, now = parent.spec.fork, state.spec.fork
    same = (before.leave_out, before.leave_out_samples) == (now.leave_out, now.leave_out_samples)
    if table is not None and same and state.batches.sampler.uses_table:
        state.batches.table = table.numpy()
    if same:
        restore_neighbourhood(state, parent.saved.tensors)
