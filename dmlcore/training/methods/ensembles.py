"""Ensembles: losses that combine the embeddings of several learners, so that the loss is a part of what is scored."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from dmlcore.training.methods.base import method
from dmlcore.training.state import Method, TrainingState, copy_tensors


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


@method(
    "ensemble",
    title="Ensemble of learners",
    source="Zabihzadeh, Alitbi & Mousavirad 2021",
    switch=lambda spec: True,  # any loss may have the method `embed`, also one of a plug-in
)
class JoinedEmbeddings(Method):
    """Scores the embeddings that a loss with a method `embed` combines, with its weights at the best validation."""

    tensors = ("best_loss",)

    def __init__(self, state: TrainingState) -> None:
        self.best_loss: dict[str, Tensor] = {}

    def embedder(self, state: TrainingState) -> nn.Module | None:
        """Return the network followed by the loss, if the loss combines embeddings."""
        return Joined(state.model, state.loss.metric) if hasattr(state.loss.metric, "embed") else None

    def keep_best(self, state: TrainingState) -> None:
        """Copy the weights of the loss."""
        self.best_loss = copy_tensors(state.loss) if hasattr(state.loss.metric, "embed") else {}

    def use_best(self, state: TrainingState) -> None:
        """Restore the weights of the loss."""
        if self.best_loss:
            state.loss.load_state_dict(self.best_loss)
