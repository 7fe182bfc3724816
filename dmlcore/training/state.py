"""State of a training run, and its conversion to and from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch
from torch import Tensor, nn

from dmlcore import processes
from dmlcore.data import Dataset
from dmlcore.models.networks import Network
from dmlcore.spec import RunSpec
from dmlcore.spec.sections import ScheduleSpec
from dmlcore.storage import checkpoint, run_directory
from dmlcore.storage.checkpoint import Packed
from dmlcore.storage.runs import Run
from dmlcore.training import optimisers, reference
from dmlcore.training.batches import Batches
from dmlcore.training.errors import DeferredFiniteCheck
from dmlcore.training.neighbours import Conditioned
from dmlcore.training.objective import Objective
from dmlcore.typing import Ints, Singles


@dataclass
class TrainingProgress:
    """Progress of a training run; a checkpoint stores it in addition to the tensors."""

    step: int = 0
    best_score: float | None = None  # best value of the score `schedule.monitor`
    best_step: int = 0
    stale: int = 0  # number of validations since the best one
    plateau: int = 0  # number of validations since the best one or since the learning rate was last reduced
    halvings: int = 0  # number of times the learning rate was multiplied by schedule.plateau_factor
    projection: int = 0  # number of the current projection, from 1; 0 without projections
    projection_score: float | None = None  # best score in the current projection
    projection_stale: int = 0  # number of validations since `projection_score` was reached
    conditioned: bool = False  # True once embeddings are conditioned on neighbours

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
    progress: TrainingProgress = field(default_factory=TrainingProgress)
    best: dict[str, Tensor] = field(default_factory=dict)  # weights with the best monitored score
    # weights of the loss at the step of `best`, if the loss contributes to the embeddings
    best_loss: dict[str, Tensor] = field(default_factory=dict)
    # parameters theta* that the current projection stays close to
    anchor: dict[str, Tensor] = field(default_factory=dict)
    # best network parameters and proxies of the current projection
    candidate: dict[str, Tensor] = field(default_factory=dict)
    # Neighbours of the training split for conditioned embeddings: "table" (N, D), the unconditioned embeddings, and
    # "neighbours" (N, K), row indices into the table, on the CPU.
    neighbourhood: dict[str, Tensor] = field(default_factory=dict)
    # frozen copy of the initial network, if `loss.start_weight` penalises moving away from its embeddings
    reference: Network | None = None
    reference_distance: Tensor | None = None  # mean distance of the last step's embeddings from the reference
    # indices (Q, K) of the neighbours of the test samples, found when neighbourhood batches started
    fixed: Ints | None = None
    last_batch: tuple[Tensor, Tensor] | None = None  # last step's embeddings (B, D) float32 and labels (B,), detached
    # called with step and embeddings of each validation, on rank 0 of a run that has a directory
    record_frame: Callable[[int, Singles], None] | None = None
    norm: Tensor | None = None  # norm of the last gradient before clipping, if it was computed


def embedder(state: TrainingState) -> nn.Module:
    """Return the module whose embeddings are scored.

    This is the network; the network followed by the loss if the loss combines embeddings from several learners
    (`Joined`); or, once conditioning on neighbours has started, the conditioned network (`Conditioned`).
    """
    if state.progress.conditioned:
        # if training continued, the stored table belongs to earlier weights
        still = not state.spec.conditioning.continued
        table = state.neighbourhood.get("table") if still else None
        return Conditioned(state.model, state.spec, state.data, state.device, table)
    return Joined(state.model, state.loss.metric) if hasattr(state.loss.metric, "embed") else state.model


def keep_best(state: TrainingState) -> None:
    """Store a copy of the current weights as the best weights."""
    state.best = _copied(state.model)
    state.best_loss = _copied(state.loss) if hasattr(state.loss.metric, "embed") else {}


def use_best(state: TrainingState) -> None:
    """Restore the best weights, if any were stored."""
    if state.best:
        state.model.load_state_dict(state.best)
    if state.best_loss:
        state.loss.load_state_dict(state.best_loss)


def is_kept(schedule: ScheduleSpec, step: int) -> bool:
    """Return True if the checkpoint of this step is kept permanently: step 0 and every multiple of `keep_every`.

    The checkpoint of the last step is kept in addition.
    """
    return schedule.keep_every > 0 and step % schedule.keep_every == 0


def save(run: Run, state: TrainingState, metrics_offset: int) -> None:
    """Write a checkpoint.

    `metrics_offset` is the length of metrics.jsonl in bytes; all rows before this offset must be on disk.
    """
    write(run, tensors(state), facts(run, state, metrics_offset))


def facts(run: Run, state: TrainingState, metrics_offset: int) -> dict[str, Any]:
    """Return the entries of a checkpoint other than its tensors, such as progress, spec and number of threads."""
    known = asdict(state.progress) | {"metrics_offset": metrics_offset, "threads": torch.get_num_threads()}
    known |= {"torch": str(torch.__version__), "device": device_model(state.device)}
    known |= {"spec": run.spec.to_json(), "fused": optimisers.is_fused(state.optimiser), "mode": state.mode}
    return known | {"processes": processes.size()}


def write(run: Run, tensors: Mapping[str, Tensor] | Packed, facts: Mapping[str, Any]) -> None:
    """Write the newest checkpoint, and also copy it permanently if `is_kept` returns True for its step."""
    checkpoint.save(run.path, tensors, facts)
    if is_kept(run.spec.schedule, facts["step"]):
        checkpoint.keep(run.path, facts["step"], run.path / run_directory.LAST)


def tensors(state: TrainingState) -> dict[str, Tensor]:
    """Return all tensors of the state that a checkpoint stores, by name."""
    table = state.batches.table
    return checkpoint.add_prefixes(
        model=state.model.state_dict(),
        loss=state.loss.state_dict(),
        optimiser=checkpoint.optimiser_tensors(state.optimiser),
        best=state.best,
        best_loss=state.best_loss,
        anchor=state.anchor,
        candidate=state.candidate,
        neighbourhood=state.neighbourhood,
        reference=reference.tensors(state.reference),
        fixed={} if state.fixed is None else {"neighbours": torch.from_numpy(state.fixed)},
        table={} if table is None else {"embeddings": torch.from_numpy(table)},
    )


def restore(state: TrainingState, tensors: Mapping[str, Tensor], *, fused: bool = True) -> None:
    """Restore the tensors that `tensors` returned; pass `fused=False` if the optimiser used unfused kernels."""
    restore_weights(state, tensors)
    restore_moments(state, checkpoint.select_prefix(tensors, "optimiser"), fused=fused)
    restore_projection(state, tensors)
    restore_neighbourhood(state, tensors)
    reference.restore(state.reference, checkpoint.select_prefix(tensors, "reference"))
    restore_fixed(state, tensors)
    table = checkpoint.select_prefix(tensors, "table").get("embeddings")
    state.batches.table = None if table is None else table.numpy()


def restore_weights(state: TrainingState, tensors: Mapping[str, Tensor]) -> None:
    """Restore only the weights of network and loss, and the best weights."""
    state.model.load_state_dict(checkpoint.select_prefix(tensors, "model"))
    state.loss.load_state_dict(checkpoint.select_prefix(tensors, "loss"))
    state.best, state.best_loss = (
        checkpoint.select_prefix(tensors, "best"),
        checkpoint.select_prefix(tensors, "best_loss"),
    )


def restore_projection(state: TrainingState, tensors: Mapping[str, Tensor]) -> None:
    """Restore `anchor` and `candidate` of a projection; both are empty if the checkpoint has none."""
    state.anchor, state.candidate = (
        {name: tensor.to(state.device) for name, tensor in checkpoint.select_prefix(tensors, part).items()}
        for part in ("anchor", "candidate")
    )


def restore_neighbourhood(state: TrainingState, tensors: Mapping[str, Tensor]) -> None:
    """Restore `neighbourhood`, the neighbours of the training split; it is empty if the checkpoint has none."""
    state.neighbourhood = dict(checkpoint.select_prefix(tensors, "neighbourhood"))
    if state.neighbourhood:
        state.neighbourhood["table"] = state.neighbourhood["table"].to(state.device)


def restore_fixed(state: TrainingState, tensors: Mapping[str, Tensor]) -> None:
    """Restore `fixed`, the fixed neighbours of the test samples; it is None if the checkpoint has none."""
    listed = checkpoint.select_prefix(tensors, "fixed").get("neighbours")
    state.fixed = None if listed is None else listed.numpy()


def restore_moments(state: TrainingState, moments: Mapping[str, Tensor], *, fused: bool) -> None:
    """Restore the optimiser's moments; if they come from unfused kernels, switch to unfused kernels."""
    checkpoint.restore_optimiser(state.optimiser, moments)
    if optimisers.is_fused(state.optimiser) and not fused:
        optimisers.disable_fused(state.optimiser)
    optimisers.start_momentum(state.optimiser)


def device_model(device: torch.device) -> str:
    """Return a name for the device that determines rounding: "CPU", or the name of the GPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


class Joined(nn.Module):
    """Network followed by a loss that combines the embeddings of several learners."""

    def __init__(self, model: nn.Module, metric: nn.Module) -> None:
        super().__init__()
        self.model, self.metric = model, metric

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the combined embeddings of the inputs."""
        embed: Any = self.metric.embed
        joined: Tensor = embed(self.model(inputs))
        return joined


def _copied(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
