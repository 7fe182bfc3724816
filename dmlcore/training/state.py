"""Everything that changes during a training run, as data, and how it goes into a checkpoint and comes back."""

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
from dmlcore.storage.runs import Run
from dmlcore.training import optimisers, reference
from dmlcore.training.batches import Batches
from dmlcore.training.errors import DeferredFiniteCheck
from dmlcore.training.neighbours import Conditioned
from dmlcore.training.objective import Objective
from dmlcore.typing import Ints


@dataclass
class TrainingProgress:
    """Where a run stands: what a checkpoint records beside the tensors."""

    step: int = 0
    best_score: float | None = None  # of `schedule.monitor`
    best_step: int = 0
    stale: int = 0  # validations since the best
    plateau: int = 0  # validations since the best or since the learning rate was last lowered
    halvings: int = 0  # times it was lowered, by schedule.plateau_factor
    projection: int = 0  # its number, from 1; 0: there are none
    projection_score: float | None = None  # the best in it
    projection_stale: int = 0  # validations since
    conditioned: bool = False  # whether embeddings are of samples and their neighbours by now

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> TrainingProgress:
        """What a checkpoint recorded; one of an earlier release lacks what was added later."""
        later = {field.name: facts[field.name] for field in fields(cls) if field.name in facts}
        return cls(**later | {"step": facts["step"]})


@dataclass
class TrainingState:
    """Everything that changes during a training run, and what it is made with."""

    spec: RunSpec
    data: Dataset
    device: torch.device
    model: Network
    forward: Callable[[Tensor], Tensor]  # of the model, compiled where the spec asks for it
    loss: Objective
    optimiser: torch.optim.Optimizer
    batches: Batches
    frozen_at_first: list[nn.Parameter]  # what the warm-up does not train
    finite_check: DeferredFiniteCheck | None  # None where asking each step at once is cheap
    progress: TrainingProgress = field(default_factory=TrainingProgress)
    best: dict[str, Tensor] = field(default_factory=dict)  # the weights with the best monitored score
    best_loss: dict[str, Tensor] = field(default_factory=dict)  # those of a loss that takes part in embedding
    anchor: dict[str, Tensor] = field(default_factory=dict)  # the parameters that a projection holds the network to
    candidate: dict[str, Tensor] = field(default_factory=dict)  # the best of the projection: network and proxies
    neighbourhood: dict[str, Tensor] = field(
        default_factory=dict
    )  # of conditioned embeddings, over the training split:
    # table (N, D), by the network alone; neighbours (N, K), rows of it, on the CPU
    reference: Network | None = None  # the network as it started, if embeddings are held to it
    strayed: Tensor | None = None  # how far from it those of the last step were, on average
    fixed: Ints | None = None  # neighbours (Q, K) of each test sample when neighbourhood batches began
    seen: tuple[Tensor, Tensor] | None = None  # of the last step: embeddings (B, D) float32, labels (B,), detached
    norm: Tensor | None = None  # of its gradient before clipping, if it was needed


def embedder(state: TrainingState) -> nn.Module:
    """What makes scored embeddings of inputs: the network, and how an ensemble joins what its learners embed, or how
    neighbours take part.
    """
    if state.progress.conditioned:
        still = not state.spec.conditioning.continued  # then the table is of any weights since neighbours were known
        table = state.neighbourhood.get("table") if still else None
        return Conditioned(state.model, state.spec, state.data, state.device, table)
    return Joined(state.model, state.loss.metric) if hasattr(state.loss.metric, "embed") else state.model


def keep_best(state: TrainingState) -> None:
    """Keep the weights as they are now as the best."""
    state.best = _copied(state.model)
    state.best_loss = _copied(state.loss) if hasattr(state.loss.metric, "embed") else {}


def use_best(state: TrainingState) -> None:
    """Go back to the best weights, if any were kept."""
    if state.best:
        state.model.load_state_dict(state.best)
    if state.best_loss:
        state.loss.load_state_dict(state.best_loss)


def is_kept(schedule: ScheduleSpec, step: int) -> bool:
    """Whether the checkpoint of this step stays: of the first and each keep_every-th; the last one stays too."""
    return schedule.keep_every > 0 and step % schedule.keep_every == 0


def save(run: Run, state: TrainingState, metrics_offset: int) -> None:
    """Write the checkpoint; metrics_offset: length of metrics.jsonl, whose rows are durable."""
    write(run, tensors(state), facts(run, state, metrics_offset))


def facts(run: Run, state: TrainingState, metrics_offset: int) -> dict[str, Any]:
    """What a checkpoint records beside the tensors."""
    known = asdict(state.progress) | {"metrics_offset": metrics_offset, "threads": torch.get_num_threads()}
    known |= {"torch": str(torch.__version__), "device": device_model(state.device)}
    known |= {"spec": run.spec.to_json(), "fused": optimisers.is_fused(state.optimiser)}
    return known | {"processes": processes.size()}


def write(run: Run, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Replace the newest checkpoint, and keep it where its step is one of those that are kept."""
    checkpoint.save(run.path, tensors, facts)
    if is_kept(run.spec.schedule, facts["step"]):
        checkpoint.keep(run.path, facts["step"], run.path / run_directory.LAST)


def tensors(state: TrainingState) -> dict[str, Tensor]:
    """All of it, for a checkpoint."""
    table = state.batches.table
    return checkpoint.join(
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
    """Put back what `tensors` took; fused: False if it was taken from an optimiser with plain kernels."""
    restore_weights(state, tensors)
    restore_moments(state, checkpoint.part(tensors, "optimiser"), fused=fused)
    restore_projection(state, tensors)
    restore_neighbourhood(state, tensors)
    reference.restore(state.reference, checkpoint.part(tensors, "reference"))
    restore_fixed(state, tensors)
    table = checkpoint.part(tensors, "table").get("embeddings")
    state.batches.table = None if table is None else table.numpy()


def restore_weights(state: TrainingState, tensors: Mapping[str, Tensor]) -> None:
    """Put back the weights of network and loss alone, and the best ones."""
    state.model.load_state_dict(checkpoint.part(tensors, "model"))
    state.loss.load_state_dict(checkpoint.part(tensors, "loss"))
    state.best, state.best_loss = checkpoint.part(tensors, "best"), checkpoint.part(tensors, "best_loss")


def restore_projection(state: TrainingState, tensors: Mapping[str, Tensor]) -> None:
    """Put back what a projection holds on to; both are empty where there is none."""
    state.anchor, state.candidate = (
        {name: tensor.to(state.device) for name, tensor in checkpoint.part(tensors, part).items()}
        for part in ("anchor", "candidate")
    )


def restore_neighbourhood(state: TrainingState, tensors: Mapping[str, Tensor]) -> None:
    """Put back the neighbours of the training split; empty where there are none yet."""
    state.neighbourhood = dict(checkpoint.part(tensors, "neighbourhood"))
    if state.neighbourhood:
        state.neighbourhood["table"] = state.neighbourhood["table"].to(state.device)


def restore_fixed(state: TrainingState, tensors: Mapping[str, Tensor]) -> None:
    """Put back the fixed neighbours of the test samples, if they were listed."""
    listed = checkpoint.part(tensors, "fixed").get("neighbours")
    state.fixed = None if listed is None else listed.numpy()


def restore_moments(state: TrainingState, moments: Mapping[str, Tensor], *, fused: bool) -> None:
    """Put back the moments of an optimiser that was `fused` or not; one that was not goes on with plain kernels."""
    checkpoint.restore_optimiser(state.optimiser, moments)
    if optimisers.is_fused(state.optimiser) and not fused:
        optimisers.without_fused(state.optimiser)
    optimisers.start_momentum(state.optimiser)


def device_model(device: torch.device) -> str:
    """What rounds the same: "CPU", or the name of the card."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


class Joined(nn.Module):
    """A network and the loss that joins what its learners embed."""

    def __init__(self, model: nn.Module, metric: nn.Module) -> None:
        super().__init__()
        self.model, self.metric = model, metric

    def forward(self, inputs: Tensor) -> Tensor:
        """The joined embeddings."""
        embed: Any = self.metric.embed
        joined: Tensor = embed(self.model(inputs))
        return joined


def _copied(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
