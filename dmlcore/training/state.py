"""Everything that changes during a training run, and how one step changes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dmlcore.data import Dataset
from dmlcore.models import networks
from dmlcore.spec import RunSpec
from dmlcore.storage import checkpoint
from dmlcore.training import optimisers
from dmlcore.training.batches import Batches, to_device
from dmlcore.training.errors import StepError
from dmlcore.training.finite_check import FiniteCheck
from dmlcore.training.objective import Objective, seed_of
from dmlcore.typing import Ints, Singles

CHUNK = 256  # samples embedded at once for the table of a sampler


@dataclass
class TrainingState:
    """Everything that changes during a training run; `best` holds the weights with the best monitored score.

    `lowered` counts the plateaus that have lowered the learning rate. After a step `seen` holds its embeddings (B, D)
    float32 and labels (B,), detached, and `gradient_norm` the norm of its gradient before clipping.
    """

    spec: RunSpec
    data: Dataset
    device: torch.device
    model: nn.Module
    loss: Objective
    optimiser: torch.optim.Optimizer
    batches: Batches
    warm_up: optimisers.WarmUp
    finite_check: FiniteCheck
    forward: Callable[[Tensor], Tensor]
    best: dict[str, Tensor] = field(default_factory=dict)
    best_loss: dict[str, Tensor] = field(default_factory=dict)  # of a loss that takes part in embedding
    lowered: int = 0
    seen: tuple[Tensor, Tensor] | None = None
    _norm: Tensor | None = None  # of the gradient before it was clipped

    def step(self, step: int, objective: Callable[..., Tensor] | None = None) -> Tensor:
        """Make step `step` >= 1 and return its loss, on the device; a function of (seed, step) and of the weights.

        objective: (embeddings, labels, shares) -> scalar, in place of `loss`. Raises StepError, with the weights
        untouched, where loss or gradient is not finite; on a GPU `finite_check.wait` raises it later.
        """
        # Learning rates, what is frozen, a batch and its augmentation.
        optimisers.set_rates(self.optimiser, self.spec.schedule, step, self.lowered)
        self.warm_up(step)
        batch = self.batches.make(step, self._embed)
        self.loss.tuples = batch.tuples
        if self.loss.miner is not None:
            self.loss.generator = torch.Generator().manual_seed(seed_of(self.spec.seed, "miner", step))

        # Forward, the network in the precision of the spec and the loss in float32; backward.
        try:
            with self._precision():
                embeddings = self.forward(batch.inputs)
            embeddings, shares = embeddings.float(), self.shares()
            loss: Tensor = (objective or self.loss)(embeddings, batch.labels, shares)
        except ValueError as error:  # the loss refuses embeddings that are not finite or whose squares overflow
            self.finite_check.wait()
            raise StepError(str(error), step, batch.indices) from None
        self.finite_check.loss(loss, step, batch.indices)
        self.optimiser.zero_grad()
        loss.backward()

        # The optimiser's step; nothing that is not finite reaches the weights.
        gradients, settings = optimisers.gradients(self.optimiser), self.spec.optimiser
        clips = settings.clip_norm > 0 or settings.clip_value > 0
        self._norm = nn.utils.get_total_norm(gradients) if clips or self.device.type == "cuda" else None
        # On a CPU a sum finds NaN and Inf in half the time of a norm.
        seen = torch.stack([gradient.sum() for gradient in gradients]).sum() if self._norm is None else self._norm
        self.finite_check.gradient(seen, step, batch.indices)
        if self._norm is not None:
            optimisers.clip(self.optimiser, settings, self._norm)
        if self.finite_check.deferred:
            self.optimiser.found_inf = self.finite_check.found_inf  # type: ignore[attr-defined]
        self.optimiser.step()
        if isinstance(self.model, networks.TokenNetwork):
            self.model.after_step()
        self.seen = embeddings.detach(), batch.labels
        return loss.detach()

    @property
    def gradient_norm(self) -> Tensor:
        """Norm of the gradient of the last step, before clipping."""
        return nn.utils.get_total_norm(optimisers.gradients(self.optimiser)) if self._norm is None else self._norm

    def shares(self) -> Tensor | None:
        """Prototype shares (B, m) of the last batch, where the pooling has prototypes."""
        pooled: Tensor | None = getattr(getattr(self.model, "pool", None), "shares", None)
        return pooled.float() if pooled is not None else None

    @property
    def fused(self) -> bool:
        """Whether the optimiser's kernels are fused, which round differently from the plain ones."""
        return optimisers.is_fused(self.optimiser)

    @property
    def pooling_ready(self) -> bool:
        """False while a pooling with prototypes collects what they start from, and averages meanwhile."""
        return bool(getattr(getattr(self.model, "pool", None), "ready", True))

    def measured(self) -> dict[str, float]:
        """What the losses of the last batch say beside their value, as numbers, for which it waits."""
        return {name: float(value) for name, value in self.loss.measured().items()}

    @property
    def embedder(self) -> nn.Module:
        """What makes scored embeddings of inputs: the network, and how an ensemble joins what its learners embed."""
        return _Joined(self.model, self.loss.metric) if hasattr(self.loss.metric, "embed") else self.model

    def keep_best(self) -> None:
        """Keep the weights as they are now as the best."""
        self.best = _copied(self.model)
        self.best_loss = _copied(self.loss) if hasattr(self.loss.metric, "embed") else {}

    def use_best(self) -> None:
        """Go back to the best weights, if any were kept."""
        if self.best:
            self.model.load_state_dict(self.best)
        if self.best_loss:
            self.loss.load_state_dict(self.best_loss)

    def tensors(self) -> dict[str, Tensor]:
        """All of it, for a checkpoint."""
        table = self.batches.table
        return checkpoint.join(
            model=self.model.state_dict(),
            loss=self.loss.state_dict(),
            optimiser=checkpoint.optimiser_tensors(self.optimiser),
            best=self.best,
            best_loss=self.best_loss,
            table={} if table is None else {"embeddings": torch.from_numpy(table)},
        )

    def restore(self, tensors: Mapping[str, Tensor], *, fused: bool = True) -> None:
        """Put back what `tensors` took; fused: False if it was taken from an optimiser with plain kernels."""
        self.model.load_state_dict(checkpoint.part(tensors, "model"))
        self.loss.load_state_dict(checkpoint.part(tensors, "loss"))
        self.restore_optimiser(checkpoint.part(tensors, "optimiser"), fused=fused)
        self.best, self.best_loss = checkpoint.part(tensors, "best"), checkpoint.part(tensors, "best_loss")
        table = checkpoint.part(tensors, "table").get("embeddings")
        self.batches.table = None if table is None else table.numpy()

    def restore_optimiser(self, moments: Mapping[str, Tensor], *, fused: bool) -> None:
        """Put back the moments of an optimiser that was `fused` or not; one that was not goes on with plain kernels."""
        checkpoint.restore_optimiser(self.optimiser, moments)
        if self.fused and not fused:
            optimisers.without_fused(self.optimiser)
            self.finite_check.deferred = False  # plain kernels cannot skip an update
        optimisers.start_momentum(self.optimiser)

    def _precision(self) -> AbstractContextManager[object]:
        if self.spec.compute.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def _embed(self, indices: Ints) -> Singles:
        """Embeddings (n, D) of these samples by the network as it is, images uncut."""
        was_training = self.model.training
        self.model.eval()
        with torch.inference_mode():
            chunks = np.split(indices, range(CHUNK, len(indices), CHUNK))
            embeddings = [
                self.model(to_device(self.data, chunk, self.device)).float().cpu().numpy() for chunk in chunks
            ]
        self.model.train(was_training)
        return np.concatenate(embeddings)


class _Joined(nn.Module):
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
