"""State of a training run, and its conversion to and from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dmlcore.data import Dataset
from dmlcore.models.networks import Network
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import ScheduleSpec
from dmlcore.storage import checkpoint
from dmlcore.storage.metrics_rows import Row
from dmlcore.training import optimisers
from dmlcore.training.batches import Batch, Batches
from dmlcore.training.errors import DeferredFiniteCheck
from dmlcore.training.objective import Objective
from dmlcore.typing import Singles


@dataclass
class TrainingProgress:
    """Progress of a training run; a checkpoint stores it in addition to the tensors."""

    step: int = 0
    best_score: float | None = None  # best value of the score `schedule.monitor`
    best_step: int = 0
    stale: int = 0  # number of validations since the best one
    plateau: int = 0  # number of validations since the best one or since the learning rate was last reduced
    halvings: int = 0  # number of times the learning rate was multiplied by schedule.plateau_factor

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> TrainingProgress:
        """Read the progress from a checkpoint; entries that an earlier release did not write get default values."""
        later = {field.name: facts[field.name] for field in fields(cls) if field.name in facts}
        return cls(**later | {"step": facts["step"]})


@dataclass
class TrainingState:
    """State of a training run: settings, data, network, loss, optimiser, and all values that change in training."""

    spec: RunSpec
    data: Dataset
    device: torch.device
    model: Network
    mode: str  # how the forward pass is launched, see `forward_pass`
    forward: Callable[[Tensor], Tensor]  # forward pass of `model` in this mode
    loss: Objective
    optimiser: torch.optim.Optimizer
    batches: Batches
    frozen_at_first: list[nn.Parameter]  # parameters that are frozen during the warm-up
    finite_check: DeferredFiniteCheck | None  # None on a CPU, where checking each step immediately is cheap
    methods: Sequence[Method] = ()  # additions of single papers to the training; see `dmlcore.training.methods`
    progress: TrainingProgress = field(default_factory=TrainingProgress)
    best: dict[str, Tensor] = field(default_factory=dict)  # weights with the best monitored score
    last_batch: tuple[Tensor, Tensor] | None = None  # last step's embeddings (B, D) float32 and labels (B,), detached
    # called with step and embeddings of each validation, on rank 0 of a run that has a directory
    record_frame: Callable[[int, Singles], None] | None = None
    norm: Tensor | None = None  # norm of the last gradient before clipping, if it was computed


@dataclass(frozen=True)
class Parent:
    """Checkpoint of the run that a fork continues.

    Attributes:
        tensors: Tensors of the checkpoint by name.
        facts: Other entries of the checkpoint.
        whole: True if the fork has the objective of its parent, so that it can continue whatever the parent was doing.
        same_samples: True if fork and parent train on the same samples.
        has_proxies: True if the fork has taken over the proxies of the loss.
    """

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]
    whole: bool
    same_samples: bool
    has_proxies: bool


class Method:
    """Base class of methods: what a paper adds to the training loop, as hooks that do nothing by default.

    A method is created at the end of `build` and, for a fork, after the weights of the parent have been loaded. All
    processes that train a run call the hooks, with the same values. Randomness must be a function of (seed, step), see
    `objective.seed_of`.

    Args:
        state: Training state, whose network, loss and optimiser exist.
        **parameters: Hyper-parameters `method.parameters` of the spec; see `dmlcore.training.methods`.

    Attributes:
        tensors: Names of the attributes that are dictionaries of tensors. Checkpoints store them, each under its name.
        facts: Names of the attributes that checkpoints store as entries other than tensors, such as counts.
    """

    tensors: ClassVar[tuple[str, ...]] = ()
    facts: ClassVar[tuple[str, ...]] = ()

    def begin(self, state: TrainingState) -> list[Row]:
        """Prepare the first step of a new run, before its first validation; return metrics rows."""
        return []

    def before_step(self, state: TrainingState, number: int) -> None:
        """Prepare step `number`, for example by freezing parameters."""

    def embeddings(self, state: TrainingState, number: int, own: Tensor, batch: Batch) -> Tensor:
        """Return the embeddings (B, D) that the loss receives in step `number`, given those of the network, `own`."""
        return own

    def penalty(self, state: TrainingState, own: Tensor, batch: Batch) -> Tensor | None:
        """Return a scalar that is added to the loss, if any.

        `own` are the embeddings (B, D) of the network. If several processes train the run, `batch.inputs` is a share of
        the batch, and `processes.gather` returns the outputs for the whole batch.
        """
        return None

    def after_backward(self, state: TrainingState) -> None:
        """Change the gradients, before they are clipped."""

    def after_update(self, state: TrainingState) -> None:
        """Follow the weights after the optimiser has changed them."""

    def after_step(self, state: TrainingState, validation: list[Row]) -> list[Row]:
        """Act on a finished step, number `state.progress.step`, and return metrics rows.

        `validation` holds the metrics rows of the validation after this step; it is empty if there was none.
        """
        return []

    def measured(self, state: TrainingState) -> dict[str, Any]:
        """Return values of the last step for the next metrics row of kind "measure"."""
        return {}

    def embedder(self, state: TrainingState) -> nn.Module | None:
        """Return the module whose embeddings are scored, if it is not the network itself."""
        return None

    def keep_best(self, state: TrainingState) -> None:
        """Copy what `embedder` needs in addition to the weights of the network, which have the best score yet."""

    def use_best(self, state: TrainingState) -> None:
        """Restore what `keep_best` copied."""

    def after_test(self, state: TrainingState, embeddings: Singles, step: int) -> list[Row]:
        """Return further metrics rows of the final test.

        Args:
            state: State with the tested weights.
            embeddings: Embeddings of the samples that `batches.rows_of` returns for the test split, (n, D).
            step: Step of the tested weights.
        """
        return []

    def state_tensors(self) -> dict[str, dict[str, Tensor]]:
        """Return the tensors that a checkpoint stores, by prefix and name."""
        return {prefix: getattr(self, prefix) for prefix in self.tensors}

    def restore(self, state: TrainingState, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Restore tensors and facts from a checkpoint; what it does not contain is reset or left unchanged."""
        for prefix in self.tensors:
            kept = checkpoint.select_prefix(tensors, prefix)
            setattr(self, prefix, {name: tensor.to(state.device) for name, tensor in kept.items()})
        for name in self.facts:
            setattr(self, name, facts.get(name, getattr(type(self), name)))

    def fork(self, state: TrainingState, parent: Parent) -> list[str]:
        """Take over the state from the parent of a fork or, if the objective changed, begin again.

        Returns:
            Descriptions of what was reset, for the report of the fork.
        """
        if parent.whole:
            self.restore(state, parent.tensors, parent.facts)
        else:
            self.begin(state)
        return []


def embedder(state: TrainingState) -> nn.Module:
    """Return the module whose embeddings are scored: the network, unless a method provides another one."""
    others = (method.embedder(state) for method in state.methods)
    return next((module for module in others if module is not None), state.model)


def autocast(state: TrainingState) -> torch.autocast:
    """Return the context in which networks compute, in the precision of the spec."""
    return torch.autocast(state.device.type, torch.bfloat16, enabled=state.spec.compute.precision == "bfloat16")


def keep_best(state: TrainingState) -> None:
    """Store a copy of the current weights as the best weights."""
    state.best = copy_tensors(state.model)
    for method in state.methods:
        method.keep_best(state)


def use_best(state: TrainingState) -> None:
    """Restore the best weights, if any were stored."""
    if state.best:
        state.model.load_state_dict(state.best)
        for method in state.methods:
            method.use_best(state)


def copy_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return a copy of the parameters and buffers of a module by name."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def is_kept(schedule: ScheduleSpec, step: int) -> bool:
    """Return True if the checkpoint of this step is kept permanently: step 0 and every multiple of `keep_every`.

    The checkpoint of the last step is kept in addition.
    """
    return schedule.keep_every > 0 and step % schedule.keep_every == 0


def progress_facts(state: TrainingState) -> dict[str, Any]:
    """Return the progress of the run and of its methods, by name."""
    return asdict(state.progress) | {name: getattr(m, name) for m in state.methods for name in m.facts}


def tensors(state: TrainingState) -> dict[str, Tensor]:
    """Return all tensors of the state that a checkpoint stores, by name."""
    table = state.batches.table
    parts: dict[str, Mapping[str, Tensor]] = {
        "model": state.model.state_dict(),
        "loss": state.loss.state_dict(),
        "optimiser": checkpoint.optimiser_tensors(state.optimiser),
        "best": state.best,
        "table": {} if table is None else {"embeddings": torch.from_numpy(table)},
    }
    for method in state.methods:
        parts |= method.state_tensors()
    return checkpoint.add_prefixes(**parts)


def restore(state: TrainingState, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], *, fused: bool) -> None:
    """Restore everything that `tensors` and `progress_facts` returned.

    Pass `fused=False` if the optimiser used unfused kernels.
    """
    restore_weights(state, tensors, facts)
    restore_moments(state, checkpoint.select_prefix(tensors, "optimiser"), fused=fused)
    table = checkpoint.select_prefix(tensors, "table").get("embeddings")
    state.batches.table = None if table is None else table.numpy()


def restore_weights(state: TrainingState, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Restore current and best weights, progress and methods, but not what only further training needs."""
    state.model.load_state_dict(checkpoint.select_prefix(tensors, "model"))
    state.loss.load_state_dict(checkpoint.select_prefix(tensors, "loss"))
    state.best = checkpoint.select_prefix(tensors, "best")
    state.progress = TrainingProgress.from_facts(facts)
    for method in state.methods:
        method.restore(state, tensors, facts)


def restore_moments(state: TrainingState, moments: Mapping[str, Tensor], *, fused: bool) -> None:
    """Restore the optimiser's moments; if they come from unfused kernels, switch to unfused kernels."""
    checkpoint.restore_optimiser(state.optimiser, moments)
    if optimisers.is_fused(state.optimiser) and not fused:
        optimisers.disable_fused(state.optimiser)
    optimisers.start_momentum(state.optimiser)


def device_model(device: torch.device) -> str:
    """Return a name for the device that determines rounding: "CPU", or the name of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
